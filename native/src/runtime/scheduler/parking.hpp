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
//    start_search(self, chiplet);
//    for (;;) {
//      if (it finds work somewhere, or the end has come) { end_search(self, order); break; }
//      prepare(self);
//      if (a second look at every queue shows something that it may run, or the end) cancel(self);
//      else commit(self);
//    }
//
// A thread that is no worker may stand in for one that sleeps (worker.hpp): it takes the worker's
// place while the worker's own thread sleeps on, and so the worker is busy, until it gives it back:
//
//    sleeper --borrow--> busy --begin_return--> sleeper --end_return--> sleeper
//    busy or searcher --return_awake--> searcher, and its own thread goes on
//
// Between begin_return and end_return it takes the worker's second look at every queue.
//
// A producer publishes its work, then wakes a sleeper if the word says so: for work that every
// worker may run if nobody searches (detail::published, then Wave::needs_sleeper and wake_one), for
// work that only some may run even then (notify_allowed), because a searcher may not be one of
// them.
//
// What it promises
//  - No lost wake-up: after work was published and notified, not all workers that may run it sleep.
//    Either the producer sees the sleeper, or the sleeper's second look sees the work (the fence in
//    prepare, against the light one in published). A producer that relied on a searcher is safe,
//    too: the searcher finds the work, or sleeps after prepare, or finds other work, and then, if
//    it was the last searcher, wakes another in its place. Where all others sleep it only looks for
//    such work: a worker leaves none that it may run when it falls asleep, and other threads have a
//    full fence between the work and the look for searchers, as it has before its own look.
//  - A worker's place that is given back loses none either, and needs no system call if all others
//    sleep then: a fence of its own orders it with threads that are no workers, which have a full
//    fence, and with workers that wake later.
//  - Without idle workers the producer's part is a load and a branch.
//  - A Wave makes at most one system call, whatever the number of workers that it wakes: they are a
//    tree (wake_tree.hpp), so that the last of n is up after log n steps. To find them it passes
//    over each worker about once, and over all of them for work for which nobody sleeps.
//
// The counts are in two levels: {sleepers, searchers} of each chiplet, and {chiplets with sleepers,
// chiplets with searchers} of all. Producers read the second only. It changes when the first
// sleeper or searcher of a chiplet comes and when the last one goes. It is raised before a
// chiplet's count leaves 0 and lowered after it is 0 again, so whoever is counted in a chiplet
// shows in the word.
//
// native/models/parking.pml models this with store buffers; both use the same labels, such as
// [sleeper-fence].
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "asymmetric_fence.hpp"
#include "wake_tree.hpp"

namespace atl::runtime {

class Parking {
 public:
  // Workers are 0 to `workers` - 1, all busy. Chiplets are 0 to `chiplets` - 1.
  explicit Parking(int workers, int chiplets = 1);

  // Calls that may wake a worker return it, or kNobody.
  static constexpr int kNobody = -1;

  // Everywhere below, `nearest_first` lists every worker that may be asleep, once; it may omit the
  // caller, if that is a worker.

  // A busy worker, which sits on this chiplet, begins to look for work elsewhere.
  void start_search(int worker, int chiplet = 0);

  // A searcher has found work or ends (to sleep, call prepare). Producers may have relied on it, so
  // the last one wakes another; but not if all others sleep and `anything_left()` is false: then
  // its own queues have no work, nor have those that threads that are no workers fill.
  template <class Look>
  int end_search(int worker, std::span<const int> nearest_first, Look&& anything_left) {
    if (!detail::wants_wake(change(worker, 0 - detail::kSearcher))) return kNobody;
    detail::full_fence();
    if (all_asleep(workers_ - 1) && !anything_left()) return kNobody;
    return wake_one(nearest_first);  // [last-searcher]
  }
  int end_search(int worker, std::span<const int> nearest_first) {
    return end_search(worker, nearest_first, [] { return true; });
  }

  // A searcher: from here on producers see it asleep. Check every queue again afterwards.
  void prepare(int worker);

  // The second look found something, so it does not sleep; this consumes a notify meanwhile.
  void cancel(int worker);

  // Sleeps until notified.
  void commit(int worker);

  // A thread that is no worker takes the place of a worker whose own thread has committed to
  // sleep: one of this chiplet if it can. Returns its rank, or kNobody.
  int borrow(int chiplet);
  // The place of this worker. False: it has not committed.
  bool borrow_from(int worker);

  // A worker's own thread, or one in its place.
  enum class Kind { busy, searcher };

  // The place goes back: from here on producers see its worker asleep. Look at every queue, or, if
  // this returns true, at those that are no worker's: then all other workers sleep.
  bool begin_return(int worker, Kind kind);
  // The look found nothing: the worker sleeps on. False: it was notified meanwhile, and is awake.
  bool end_return(int worker);
  // The look found something.
  void end_return_awake(int worker);
  // In place of all three: the worker has work.
  void return_awake(int worker, Kind kind);

  // Sleepers that one thread wakes together. Each counts as a searcher once it is added, but none
  // runs before let_run: until then the caller waits for nothing that a worker has to do.
  class Wave {
   public:
    // Call let_run after this number, so that the first of thousands do not wait until the last one
    // is added.
    static constexpr int kMostHeld = 256;

    explicit Wave(Parking& parking) : parking_(parking) {}
    ~Wave() { let_run(); }
    Wave(const Wave&) = delete;
    Wave& operator=(const Wave&) = delete;

    // False: it does not sleep.
    bool add(int worker);
    void let_run();
    // Whether one more piece of work that every worker may run needs a sleeper, by the word of all.
    // The first piece relies on a searcher, as a single one does. Each further one may need a
    // worker of its own: one search for all would wake their workers in a chain. (As injectglist of
    // Go, which starts as many as there are tasks and idle processors.)
    bool needs_sleeper(std::uint64_t word) {
      return std::exchange(one_of_many_, true) ? word >= detail::kSleeper
                                               : detail::wants_wake(word);
    }

   private:
    friend class Parking;

    // Where the look for the next sleeper begins: behind the last one that was found, so that n of
    // them cost one turn round a list and not n looks from its beginning. Each look may go all the
    // way round, since a worker may fall asleep behind it.
    class Cursor {
     public:
      // Attempts the positions below `end` until one succeeds. False: none did.
      template <class Attempt>
      bool find(std::size_t end, Attempt&& attempt) {
        for (std::size_t left = end; left > 0; --left) {
          if (next_ >= end) next_ = 0;
          if (attempt(next_++)) return true;
        }
        return false;
      }

     private:
      std::size_t next_ = 0;
    };

    Parking& parking_;
    WakeTree tree_;
    Cursor in_list_;     // wake_first
    Cursor by_chiplet_;  // first_near
    bool one_of_many_ = false;
  };

  // For a producer of work that every worker may run: it looks at the word after a light fence,
  // then wakes one if the wave needs it.
  const std::atomic<std::uint64_t>& word() const { return word_; }
  int wake_one(std::span<const int> nearest_first, Wave& wave);
  int wake_one(std::span<const int> nearest_first) {
    Wave alone(*this);
    return wake_one(nearest_first, alone);
  }

  // Any thread, after publishing work that only the workers with `allowed(worker)` may run: wakes
  // the nearest of them that sleeps, even if others search.
  template <class Allowed>
  int notify_allowed(std::span<const int> nearest_first, Allowed&& allowed, Wave& wave) {
    detail::full_fence();
    if (word_.load(std::memory_order_relaxed) < detail::kSleeper) return kNobody;
    return wake_first(nearest_first, allowed, wave);
  }
  template <class Allowed>
  int notify_allowed(std::span<const int> nearest_first, Allowed&& allowed) {
    Wave alone(*this);
    return notify_allowed(nearest_first, allowed, alone);
  }

  // The same as notify_allowed for a thread that has no order of its own, and wakes one on this
  // chiplet, else any, with the wave.
  template <class Allowed>
  void notify_near(int chiplet, Allowed&& allowed, Wave& wave) {
    detail::full_fence();
    if (word_.load(std::memory_order_relaxed) < detail::kSleeper) return;
    first_near(chiplet, wave.by_chiplet_,
               [&](int worker) { return allowed(worker) && wave.add(worker); });
  }

  // The same for work that every worker may run, if the wave needs a sleeper for it.
  void notify_near(int chiplet, Wave& wave) {
    detail::full_fence();
    if (!wave.needs_sleeper(word_.load(std::memory_order_relaxed))) return;
    first_near(chiplet, wave.by_chiplet_, [&](int worker) { return wave.add(worker); });
  }

  // Any thread, after publishing something for `worker` alone.
  void notify_worker(int worker, Wave& wave) {
    detail::full_fence();
    wave.add(worker);
  }

  // Any thread, after publishing something for all, such as the end.
  void notify_all();

  // For profiles: the numbers now.
  int sleepers() const;
  int searchers() const;
  // Of the sleepers those whose threads have committed, so that only a notify wakes them.
  int committed() const;
  // System calls that woke a worker so far.
  std::uint64_t futex_wakes() const { return futex_wakes_.load(std::memory_order_relaxed); }

 private:
  // A worker's word.
  enum State : std::uint32_t {
    awake,
    asleep,    // prepared; takes its second look, or is in the kernel
    parked,    // has committed: its thread touches nothing of the worker until it is notified
    borrowed,  // another thread is in its place
    leaving,   // that thread takes the worker's second look
    called,    // and is to notify the worker when it has
    claimed,   // a waker has it and is changing the counts; it may not run yet
    notified,  // counted as a searcher, may run
  };
  // Two lines each, as in deque.hpp. Its word is a State.
  struct alignas(128) Sleeper : WakeNode {};
  struct alignas(128) Chiplet {
    std::atomic<std::uint64_t> word{0};  // {sleepers, searchers}
  };

  // The first of these workers, from the wave's cursor on, that is allowed and sleeps. Passes over
  // chiplets without sleepers by one load each, if their workers are next to each other in the
  // list.
  template <class Allowed>
  int wake_first(std::span<const int> nearest_first, Allowed&& allowed, Wave& wave) {
    int chiplet = kNobody;
    bool sleepers = false;
    int found = kNobody;
    wave.in_list_.find(nearest_first.size(), [&](std::size_t at) {
      const int worker = nearest_first[at];
      const int its = chiplet_of(worker);
      if (std::exchange(chiplet, its) != its) sleepers = has_sleepers(its);
      if (!sleepers || !allowed(worker) || !wave.add(worker)) return false;
      found = worker;
      return true;
    });
    return found;
  }
  // The first sleeper, from the cursor on, for which the attempt succeeds. One turn has those of
  // this chiplet, then those of all others.
  template <class Attempt>
  int first_near(int chiplet, Wave::Cursor& cursor, Attempt&& attempt) {
    const auto workers = static_cast<std::size_t>(workers_);
    int found = kNobody;
    cursor.find(2 * workers, [&](std::size_t at) {
      const bool near = at < workers;
      const int worker = static_cast<int>(near ? at : at - workers);
      const int its = chiplet_of(worker);
      if ((its == chiplet) != near || !has_sleepers(its) || !attempt(worker)) return false;
      found = worker;
      return true;
    });
    return found;
  }
  int chiplet_of(int worker) const {
    return chiplet_of_[static_cast<std::size_t>(worker)].load(std::memory_order_relaxed);
  }
  bool has_sleepers(int chiplet) const {
    return chiplet_[chiplet].word.load(std::memory_order_relaxed) >= detail::kSleeper;
  }

  std::uint64_t change(int worker, std::uint64_t more);
  bool all_asleep(int workers) const;
  void let_run(int worker);
  enum class Claim { none, mine, called };
  Claim claim(int worker);
  bool withdraw(int worker);
  void await_notified(Sleeper& sleeper);

  alignas(128) std::atomic<std::uint64_t> word_{0};  // detail::wants_wake shows its layout
  alignas(128) std::atomic<std::uint64_t> futex_wakes_{0};
  alignas(128) const int workers_;
  const int chiplets_;
  const std::unique_ptr<Sleeper[]> sleeper_;
  const std::unique_ptr<Chiplet[]> chiplet_;
  // Where each worker is counted while it searches or sleeps, and how often that changed.
  std::vector<std::atomic<int>> chiplet_of_;
  std::atomic<std::uint64_t> moves_{0};
};

}  // namespace atl::runtime
