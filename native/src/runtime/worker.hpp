// A worker: an OS thread that sits on a core and runs tasks from its deque.
//
// Its loop runs on a fiber. A fresh task is called right there; if it suspends, the fiber stays
// with it, loop frame and all, and the worker goes on with the loop on another fiber. Once the task
// ends, it returns into that old loop frame, on whichever worker it then is. So a loop frame
// belongs to no worker, and everything in it asks anew which worker it is on.
//
// Order in which a worker looks for work
//   1. what was bound to it (its own domain), then its deque, then its yielded tasks; every
//      kFairness-th time the shared queues come first, so that nothing starves
//   2. the queues of the domains that it serves
//   3. the others' deques and yielded tasks, ring by ring, nearest first; random within a ring
//   4. sleep
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "atoll/runtime/detail/suspend.hpp"
#include "atoll/runtime/detail/worker.hpp"
#include "atoll/runtime/victims.hpp"
#include "fiber.hpp"
#include "meter.hpp"
#include "profiler/recorder.hpp"
#include "team.hpp"
#include "yield_queue.hpp"

namespace atl::runtime {

// What is done on the new stack right after a switch, for the sake of the old one. It lies on the
// old stack, so `run` must not look at it once the old one may go on.
struct After {
  void (*run)(After* after);
};

class alignas(128) Worker : public detail::WorkerHead {
 public:
  Worker(Team& team, int rank);
  ~Worker();

  // The thread's whole life.
  static void main(Team& team, int rank);
  static Worker* here() { return static_cast<Worker*>(detail::this_worker()); }

  Team& team;
  const int rank;

  // Leaves the running fiber for `to`. Never inlined: fiber.hpp says why.
  [[gnu::noinline]] void switch_to(Fiber& to, After* after);
  // Leaves it for a loop, which then looks for work.
  void switch_to_loop(After* after);
  // As switch_to_loop, but the loop begins with `word`.
  void switch_to_loop_with(Word word, After* after);

  // Makes `word` ready: in the own deque if this worker may run it, else in its domain's queue.
  void make_ready(Word word);
  // A task with this tag was published in this worker's deque, and somebody sleeps.
  void wake_for_published(Word tag);
  // See atl::yield.
  void yield();
  // For the owner of the fiber that runs here.
  Fiber& fiber() { return *fiber_; }
  int core() const { return core_; }
  const Meter& meter() const { return meter_; }
  Recorder& recorder() { return *recorder_; }
  // What a task that suspends leaves here and takes up again, perhaps elsewhere.
  struct Belongings {
    Worker* worker;
    Word tag;
    detail::TaskContext* context;
    Section* section;
  };
  Belongings leave() {
    Section* const section = recorder_->section_suspended();
    recorder_->job_end();
    return {this, tag, context, section};
  }
  void take_up(const Belongings& belongings) {
    tag = belongings.tag;
    context = belongings.context;
    if (belongings.worker != this) recorder_->migrated_from(belongings.worker->rank);
    recorder_->job_begin(true);
    recorder_->section_resumed(belongings.section);
  }

 private:
  static constexpr unsigned kFairness = 64;
  static constexpr unsigned kFreshTurn = 8;  // of yields, how often fresh tasks come before old

  [[noreturn]] static void loop(void* passed);
  static void arrived(void* passed);
  void run(Word word);

  Word next();  // 0: the team stops
  Word own_work();
  Word local();
  Word shared();
  Word search();
  Word steal_from(Worker& victim, Distance distance);
  bool anything_in_sight();
  Word take_mine(Word word);
  void sit_down();
  void keep_yielded(Word word);
  void begin_metering(Word word);
  void end_metering();
  void count_asleep(int more) const;

  std::uint64_t random();

  Fiber* fiber_ = nullptr;
  ExceptionGlobals* exceptions_ = nullptr;
  Word first_ = 0;  // what the loop begins with

  Recorder* recorder_ = nullptr;
  Meter meter_;
  Meter::Key metered_ = 0;  // what is being metered; 0: nothing
  std::int64_t metered_since_ns_ = 0;
  std::uint64_t forks_before_ = 0;
  unsigned turn_ = 0;
  unsigned yields_ = 0;

  static constexpr std::size_t kSpares = 16;
  std::array<Fiber*, kSpares> spares_{};
  std::size_t spare_count_ = 0;

  YieldQueue yielded_;
  std::uint64_t random_;
  VictimOrder victims_;
  std::vector<std::size_t> domains_;
  std::size_t domains_epoch_ = 0;
  std::size_t placement_ = 0;
  int core_ = 0;
  int node_ = 0;
  Fiber thread_fiber_;
};

}  // namespace atl::runtime
