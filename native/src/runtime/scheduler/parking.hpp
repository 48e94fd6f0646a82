// Where idle workers sleep, and how a producer wakes one: an event count with throttled wake-ups.
//
// After the event counts of Vyukov (2008) and Eigen, and the rule of Go's scheduler (Vyukov, "Go
// scheduler design doc", 2012) that a producer wakes nobody while a worker is searching already.
// A worker is in one of three states, and only these calls move it:
//
//    busy --start_search--> searcher --end_search--> busy
//    searcher --prepare--> sleeper --cancel or commit--> searcher
//
// so that a worker whose own queues are empty does
//
//    start_search();
//    for (;;) {
//      if (it finds work somewhere, or the end has come) { end_search(order); break; }
//      prepare(self);
//      if (a second look at every queue shows something that it may run, or the end) cancel(self);
//      else commit(self);
//    }
//
// and a producer publishes its work, then calls a notify: `notify` for work that every worker may
// run, `notify_allowed` for work that only some may, because a searcher may not be one of them.
//
// What it promises
//  - No lost wake-up: after work was published and notified, not all workers that may run it sleep.
//    Either the producer sees the sleeper, or the sleeper's second look sees the work (the fence in
//    prepare, against the light one in notify). A producer that relied on a searcher is safe, too:
//    the searcher finds the work, or sleeps after prepare, or finds other work, and then, if it was
//    the last searcher, wakes another in its place.
//  - notify without sleepers is a load and a branch. It wakes at most one.
//
// native/models/parking.pml models this with store buffers; both use the same labels, such as
// [sleeper-fence].
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "asymmetric_fence.hpp"

namespace atl::runtime {

class Parking {
 public:
  enum class Wake { notified, deadline };
  using Deadline = std::chrono::steady_clock::time_point;

  // Workers are 0 to `workers` - 1, all busy.
  explicit Parking(int workers);

  // Calls that may wake a worker return it, or kNobody.
  static constexpr int kNobody = -1;

  // Everywhere below, `nearest_first` lists every worker that may be asleep, once; it may omit the
  // caller, if that is a worker.

  // A busy worker begins to look for work elsewhere.
  void start_search();

  // A searcher has found work or ends (to sleep, call prepare).
  int end_search(std::span<const int> nearest_first);

  // A searcher: from here on producers see it asleep. Check every queue again afterwards.
  void prepare(int worker);

  // The second look found something, so it does not sleep; this consumes a notify meanwhile.
  void cancel(int worker);

  // Sleeps until notified, or until the deadline.
  void commit(int worker);
  Wake commit(int worker, Deadline deadline);

  // Any thread, after publishing work that every worker may run.
  void notify(std::span<const int> nearest_first) {
    detail::light_fence();                                             // [producer-fence]
    const std::uint64_t word = word_.load(std::memory_order_relaxed);  // [producer-look]
    if (detail::wants_wake(word)) [[unlikely]]
      wake_one(nearest_first);
  }

  // The two halves of notify, for a producer that has the first one inline elsewhere.
  const std::atomic<std::uint64_t>& word() const { return word_; }
  int wake_one(std::span<const int> nearest_first);

  // Any thread, after publishing work that only the workers with `allowed(worker)` may run: wakes
  // the nearest of them that sleeps, even if others search.
  template <class Allowed>
  int notify_allowed(std::span<const int> nearest_first, Allowed&& allowed) {
    detail::light_fence();
    if (word_.load(std::memory_order_relaxed) < detail::kSleeper) return kNobody;
    for (const int worker : nearest_first) {
      if (allowed(worker) && wake(worker)) return worker;
    }
    return kNobody;
  }

  // Any thread, after publishing something for `worker` alone.
  void notify_worker(int worker) {
    detail::light_fence();
    wake(worker);
  }

  // Any thread, after publishing something for all, such as the end.
  void notify_all();

  // For profiles: the numbers now.
  int sleepers() const;
  int searchers() const;

 private:
  // A worker's futex word.
  enum State : std::uint32_t {
    awake,
    asleep,    // prepared; perhaps in the kernel
    claimed,   // a waker has it and is changing the counts; it may not run yet
    notified,  // counted as a searcher, may run
  };
  // Two lines each, as in deque.hpp.
  struct alignas(128) Sleeper {
    std::atomic<std::uint32_t> state{awake};
  };

  bool wake(int worker);
  bool withdraw(Sleeper& sleeper);
  static void await_notified(Sleeper& sleeper);

  alignas(128) std::atomic<std::uint64_t> word_{0};  // detail::wants_wake shows its layout
  const int workers_;
  const std::unique_ptr<Sleeper[]> sleeper_;
};

}  // namespace atl::runtime
