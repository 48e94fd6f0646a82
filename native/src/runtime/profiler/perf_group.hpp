// Groups of perf events on the calling thread, opened with perf_event_open(2): the hardware's
// fills by source, counted in user mode only so that perf_event_paranoid 2, the kernel's default,
// allows it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "counter_page.hpp"
#include "group_read.hpp"

namespace atl::runtime {

struct PerfEvent {
  std::uint32_t type;    // PERF_TYPE_*
  std::uint64_t config;  // see perf_event_open(2) for the type
};

// Events that are counted together on the thread that opened them. The destructor closes them. At
// most kMaxGroupEvents.
class PerfGroup {
 public:
  PerfGroup() = default;
  PerfGroup(PerfGroup&& other) noexcept
      : descriptors_(std::move(other.descriptors_)), pages_(std::move(other.pages_)) {
    other.descriptors_.clear();
  }
  PerfGroup& operator=(PerfGroup&& other) noexcept {
    std::swap(descriptors_, other.descriptors_);
    std::swap(pages_, other.pages_);
    return *this;
  }
  ~PerfGroup();

  // Starts to count on the calling thread. Returns 0, or the errno of the event that failed.
  [[nodiscard]] int open(const std::vector<PerfEvent>& events);
  // Any thread: a system call.
  [[nodiscard]] std::optional<GroupReading> read() const;
  // The thread that opened it: without a system call where the kernel allows that, else as `read`.
  [[nodiscard]] std::optional<GroupReading> read_own() const;

 private:
  std::vector<int> descriptors_;  // the leader first
  std::vector<CounterPage> pages_;
};

// The source of fills for sections; tests replace it, since our machines have no counters.
class CounterReader {
 public:
  // The counters of the calling worker, whose they are, now; empty if they cannot be read.
  [[nodiscard]] virtual std::optional<FillReading> read() const = 0;

 protected:
  CounterReader() = default;
  CounterReader(CounterReader&&) = default;
  CounterReader& operator=(CounterReader&&) = default;
  ~CounterReader() = default;
};

// The groups of a fill table on the calling thread.
class FillCounters final : public CounterReader {
 public:
  // Returns 0, or an errno: then nothing is counted.
  [[nodiscard]] int open(const FillTable& table);
  // Empty if a group could not be read. Of the thread that opened them: see PerfGroup::read_own.
  [[nodiscard]] std::optional<FillReading> read() const override;
  // Any thread: one system call per group.
  [[nodiscard]] std::optional<FillReading> read_from_outside() const;

 private:
  template <class Read>
  [[nodiscard]] std::optional<FillReading> read_groups(Read&& read) const;

  std::vector<PerfGroup> groups_;
};

// One line with the reason why a group could not be opened and how to fix it. `paranoid`: the
// content of /proc/sys/kernel/perf_event_paranoid. Pure.
[[nodiscard]] std::string why_no_counters(int error, std::string_view paranoid);

}  // namespace atl::runtime
