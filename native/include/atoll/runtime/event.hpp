// An event: something that has happened or not.
//
//   atl::Event ready;
//   auto reader = atl::spawn([&] { ready.wait(); use(table); });
//   build(table);
//   ready.set();
//
// Promises
//  - `set` releases all current waiters, even if `reset` follows at once, and all later ones until
//    `reset`. What a thread wrote before `set` is visible to them.
//  - Tasks that wait are suspended; threads that are not workers sleep. Both may make all calls.
//  - An event may be destroyed as soon as every wait has returned, even if `set` has not.
//  - A wait with a stop token or a time limit returns whether the event was set.
//  - `set`, `is_set`, and `wait` on a set event: one atomic operation. 8 bytes.
//
// The word is a flag or the head of a list of waiters on their own frames, which `set` takes all at
// once, as in a stack by Treiber ("Systems programming: coping with parallelism", 1986) without
// its pop. Waits that can end early are in a table by the event's address instead
// (wait_on.hpp). native/models/event.pml models it.
#pragma once

#include <atomic>
#include <chrono>
#include <coroutine>
#include <cstdint>
#include <stop_token>

#include "atoll/runtime/detail/coro_part.hpp"
#include "atoll/runtime/detail/deadline.hpp"
#include "atoll/runtime/detail/suspend.hpp"
#include "atoll/runtime/detail/worker.hpp"
#include "atoll/runtime/export.hpp"

namespace atl {

class Event {
 public:
  Event() = default;
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  void set() {
    std::uintptr_t before = state_.load(std::memory_order_relaxed);
    do {
      if ((before & kTable) != 0) [[unlikely]]
        return set_and_wake_table();
      // Release, and a write even if it is already set: each `set` publishes what its caller wrote.
      // Acquire: it also passes on what earlier ones published, and takes the waiters' frames.
    } while (!state_.compare_exchange_weak(before, kSet, std::memory_order_acq_rel,
                                           std::memory_order_relaxed));  // [set-take]
    if (before > kSet) wake(before);
  }

  void reset() { state_.fetch_and(~kSet, std::memory_order_relaxed); }

  bool is_set() const { return (state_.load(std::memory_order_acquire) & kSet) != 0; }

  void wait() {
    if (!is_set()) wait_slow();
  }
  bool wait(const std::stop_token& stop) {
    return is_set() || wait_in_table(detail::kNever, &stop);
  }

  template <class Rep, class Period>
  bool wait_for(const std::chrono::duration<Rep, Period>& duration,
                const std::stop_token& stop = {}) {
    return is_set() || wait_in_table(detail::deadline_after(duration), &stop);
  }
  template <class Clock, class Duration>
  bool wait_until(const std::chrono::time_point<Clock, Duration>& time,
                  const std::stop_token& stop = {}) {
    return is_set() || wait_in_table(detail::deadline_at(time), &stop);
  }

  // A coroutine waits without a stack. A Coro (coro.hpp) goes on as a part of the same task, where
  // that may run; another one goes on on any worker of the runtime, which must still exist, in no
  // task. Awaited on a thread that is not a worker, it goes on on a worker of the runtime in which
  // the event is set, or, set on another thread, there in `set`, once all that have a worker or a
  // thread of their own may go on. It must not be destroyed before.
  class Awaiter;
  class CoroAwaiter;
  Awaiter operator co_await();

 private:
  struct Waiting {
    std::uintptr_t next;
    detail::Waiter waiter;
  };

  // False if it is set, and then it has not joined.
  ATOLL_EXPORT bool join(Waiting& self);

  static constexpr std::uintptr_t kSet = 1;
  static constexpr std::uintptr_t kTable = 2;  // there may be waiters in the table

  ATOLL_EXPORT void wait_slow();
  ATOLL_EXPORT bool wait_in_table(detail::Deadline deadline, const std::stop_token* stop);
  ATOLL_EXPORT static void wake(std::uintptr_t waiters);
  ATOLL_EXPORT void set_and_wake_table();

  // kSet; else a Waiting's address or 0, and perhaps kTable.
  std::atomic<std::uintptr_t> state_{0};
};

// For a Coro, whose promise is a job: 16 bytes, since there may be millions.
class Event::CoroAwaiter {
 public:
  explicit CoroAwaiter(Event& event) : self_{reinterpret_cast<std::uintptr_t>(&event), {}} {}
  CoroAwaiter(CoroAwaiter&&) = delete;

  bool await_ready() const { return event().is_set(); }
  template <class Promise>
  bool await_suspend(std::coroutine_handle<Promise> handle) {
    return join(handle.promise());
  }
  void await_resume() const {}

 protected:
  // False if the event is set; then the job is as before.
  bool join(detail::Job& job) {
    const detail::Word home = job.link;
    // In no task, so its group may end before.
    if (detail::WorkerHead* const worker = detail::this_worker(); worker != nullptr && home == 0) {
      job.link = detail::word_of(worker, detail::WordKind::job, 0);
    }
    self_.waiter = detail::waiter_of(&job);
    if (event().join(self_)) return true;
    job.link = home;
    return false;
  }

 private:
  Event& event() const { return *reinterpret_cast<Event*>(self_.next); }

  Waiting self_;  // `next` is the event's address until it has joined
};

// For any coroutine: with a job of its own.
class Event::Awaiter : detail::Job, public CoroAwaiter, public detail::KeepsContext {
 public:
  using CoroAwaiter::CoroAwaiter;

  template <class Promise>
  bool await_suspend(std::coroutine_handle<Promise> handle) {
    handle_ = handle;
    context = detail::context_of(handle);
    link = detail::home_of(handle);
    execute = [](Job* job) {
      detail::resume_from_job<Promise>(static_cast<Awaiter*>(job)->handle_);
    };
    return join(*this);
  }

 private:
  std::coroutine_handle<> handle_;
};

inline Event::Awaiter Event::operator co_await() { return Awaiter(*this); }

}  // namespace atl
