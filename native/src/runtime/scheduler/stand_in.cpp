// A thread that is no worker, in the place of one that sleeps (worker.hpp). The worker is an object
// with a deque, spare stacks and books; its thread is lent to it. Parking hands the object over:
// what one thread wrote to it is visible to the next.
//
// What does not change hands: affinity and memory policy. So the stand-in takes only work that may
// run anywhere, and leaves the rest to the worker's own thread.
#include <sched.h>

#include "profiler/recorder.hpp"
#include "stacks/overflow.hpp"
#include "worker.hpp"

namespace atl::runtime {

bool Team::run_on_caller(detail::Job* job, const detail::Completion& end) noexcept {
  // A task of another runtime waits without its worker's thread.
  if (Worker::here() != nullptr) return false;
  // A team that ends waits for visitors, also for one whose task has ended.
  visitors_.fetch_add(1, std::memory_order_relaxed);
  const int rank = has_alternate_stack() ? borrow_place() : Parking::kNobody;
  if (rank != Parking::kNobody) worker(rank).stand_in(job, end);
  visitors_.fetch_sub(1, std::memory_order_release);
  return rank != Parking::kNobody;
}

// Not of another worker while the one that is bound to this CPU is awake: both would run here, and
// that other's CPU would idle until the kernel's next tick or the one after moves the caller, some
// 4 ms each. So it is after each long run: the worker that ends it wakes the caller on its own CPU,
// and the caller preempts it before it sleeps.
int Team::borrow_place() noexcept {
  const int bound = own_cpus ? seats.bound_to(sched_getcpu()) : Parking::kNobody;
  if (bound == Parking::kNobody) return parking.borrow(chiplet_here());
  return parking.borrow_from(bound) ? bound : Parking::kNobody;
}

void Worker::stand_in(detail::Job* job, const detail::Completion& end) noexcept {
  Fiber* const own_fiber = fiber_;
  ExceptionGlobals* const own_exceptions = exceptions_;
  Fiber stack = caller_fiber();
  fiber_ = home_ = &stack;
  exceptions_ = &exception_globals();
  // They count the worker's own thread.
  const CounterReader* const own_fills = recorder_->exchange_fills(nullptr);
  Recorder::set_current(recorder_);
  recorder_->unparked();
  // It is among the sleepers of the domains all the time: who has work for one may look in vain.
  caller_ = &end;
  caller_searches_ = false;
  stand_ins_.add();
  spawned.add();
  detail::atl_rt_worker = this;
  begin_switch(stack);
  try {
    switch_to(loop_for(detail::word_of(job, detail::WordKind::job, 0)), nullptr);
  } catch (...) {  // no stack for the loop: the job is ready, and the worker wakes for it
  }
  detail::atl_rt_worker = nullptr;
  Recorder::set_current(nullptr);
  recorder_->exchange_fills(own_fills);
  caller_ = nullptr;
  fiber_ = own_fiber;
  exceptions_ = own_exceptions;
  home_ = &thread_fiber_;
  give_back();
}

// For the loop: 0 if the stand-in is to go.
Word Worker::next_for_caller(Turn turn) {
  if (caller_goes()) return 0;
  if (const Word word = own_work(turn)) return word;
  far_.begin();
  team.parking.start_search(rank, chiplet_);
  if (const Word word = search()) {
    end_search();
    return word;
  }
  recorder_->found_nothing();
  caller_searches_ = true;
  return 0;
}

bool Worker::placed_work_waits() const {
  return !bound_->queue.looks_empty() || team.domains.has_words_for(rank) ||
         team.urgent.offers([this](Word word) {
           return detail::tag_of(word) != 0 && team.domains.allows(word, rank);
         });
}

// The worker is as its own thread left it. As in `next`, with the stand-in's second look.
void Worker::give_back() {
  const Parking::Kind kind = caller_searches_ ? Parking::Kind::searcher : Parking::Kind::busy;
  recorder_->parked_again();
  if (has_own_work()) {
    recorder_->woke(rank);
    team.parking.return_awake(rank, kind);
    return;
  }
  const bool all_asleep = team.parking.begin_return(rank, kind);
  if (all_asleep ? queues_offer() : anything_in_sight()) {
    recorder_->woke(rank);
    team.parking.end_return_awake(rank);
  } else if (team.stopping()) {
    team.parking.end_return_awake(rank);
  } else {
    team.parking.end_return(rank);
  }
}

}  // namespace atl::runtime
