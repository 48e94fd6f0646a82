// The trace of one worker: a ring of its latest events, 16 bytes each.
//
// The worker writes and never waits; when the ring is full, it overwrites the oldest events and
// counts them. Any thread may read meanwhile (`copy`): a reader discards what may have been
// overwritten while it read, as readers of a seqlock do (Boehm, "Can Seqlocks Get Along With
// Programming Language Memory Models?", MSPC 2012).
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace atl::runtime {

enum class TraceKind : std::uint8_t {
  section_begin,  // value: the section's id
  section_end,
  job_begin,  // value: 1 for a suspended task that goes on, 0 for a fresh job
  job_end,
  steal,  // value: victim << 8 | Distance
  park,
  unpark,
  wake,       // value: the worker that was woken
  migration,  // value: the worker where the task ran before
  move,       // value: the core where the worker sits now
};

struct TraceEvent {
  std::int64_t at_ns;  // since the profiler's start
  TraceKind kind;
  std::uint64_t value;
  bool operator==(const TraceEvent&) const = default;
};

class TraceRing {
 public:
  // Room for at least `events`.
  explicit TraceRing(std::size_t events) : slots_(std::bit_ceil(events + 2)) {}

  // By one thread only. `at_ns` below 2^56: two years.
  void put(TraceKind kind, std::uint64_t value, std::int64_t at_ns) noexcept {
    const std::uint64_t index = written_.load(std::memory_order_relaxed);
    // Release, with acquire in `copy`: a reader that sees any of a slot's new content also sees, in
    // `written_`, that the writer had the slot. Not fences: ThreadSanitizer does not know them.
    Slot& slot = slots_[index & (slots_.size() - 1)];
    slot.when.store(static_cast<std::uint64_t>(at_ns) << 8 | static_cast<std::uint64_t>(kind),
                    std::memory_order_release);
    slot.value.store(value, std::memory_order_release);
    // Release: a reader that sees the new count sees the slot.
    written_.store(index + 1, std::memory_order_release);
  }

  // The complete events, oldest first. `lost`: the number of earlier ones.
  [[nodiscard]] std::vector<TraceEvent> copy(std::uint64_t& lost) const;
  // The number of events that `copy` would not find.
  [[nodiscard]] std::uint64_t lost() const noexcept;

 private:
  struct Slot {
    std::atomic<std::uint64_t> when{0};  // ns << 8 | kind
    std::atomic<std::uint64_t> value{0};
  };
  // One slot always belongs to the writer, which may be writing it.
  [[nodiscard]] std::uint64_t lost_of(std::uint64_t written) const noexcept {
    const std::uint64_t room = slots_.size() - 1;
    return written > room ? written - room : 0;
  }

  std::vector<Slot> slots_;  // a power of two
  std::atomic<std::uint64_t> written_{0};
};

}  // namespace atl::runtime
