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

#include "group_read.hpp"

namespace atl::runtime {

struct PerfEvent {
  std::uint32_t type;    // PERF_TYPE_*
  std::uint64_t config;  // see perf_event_open(2) for the type
};

// Events that are counted together on the thread that opened them; any thread may read. The
// destructor closes them. At most kMaxGroupEvents.
class PerfGroup {
 public:
  PerfGroup() = default;
  PerfGroup(PerfGroup&& other) noexcept : descriptors_(std::move(other.descriptors_)) {
    other.descriptors_.clear();
  }
  PerfGroup& operator=(PerfGroup&& other) noexcept {
    std::swap(descriptors_, other.descriptors_);
    return *this;
  }
  ~PerfGroup();

  // Starts to count on the calling thread. Returns 0, or the errno of the event that failed.
  [[nodiscard]] int open(const std::vector<PerfEvent>& events);
  [[nodiscard]] std::optional<GroupReading> read() const;

 private:
  std::vector<int> descriptors_;  // the leader first
};

// The source of fills for sections; tests replace it, since our machines have no counters.
class CounterReader {
 public:
  // The counters of the calling worker now; empty if they cannot be read.
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
  // One system call per group. Empty if a group could not be read.
  [[nodiscard]] std::optional<FillReading> read() const override;

 private:
  std::vector<PerfGroup> groups_;
};

// One line with the reason why a group could not be opened and how to fix it. `paranoid`: the
// content of /proc/sys/kernel/perf_event_paranoid. Pure.
[[nodiscard]] std::string why_no_counters(int error, std::string_view paranoid);

}  // namespace atl::runtime
