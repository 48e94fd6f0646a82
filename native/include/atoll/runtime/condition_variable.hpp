// A condition variable for tasks, with a Mutex: std::condition_variable_any's calls.
//
//   std::unique_lock lock(mutex);
//   filled.wait(lock, [&] { return !queue.empty(); });
//
// Promises
//  - A wait may end for no reason; the calls that take a predicate look again.
//  - Works from tasks and from threads that are no workers; may be destroyed once every wait has
//    returned, also while the `notify_all` that ended it has not.
//  - A notify that nobody waits for is one atomic operation. 4 bytes.
#pragma once

#include <atomic>
#include <chrono>
#include <concepts>
#include <cstdint>
#include <mutex>
#include <stop_token>

#include "atoll/runtime/detail/deadline.hpp"
#include "atoll/runtime/export.hpp"
#include "atoll/runtime/mutex.hpp"

namespace atl {

class ConditionVariable {
 public:
  using Lock = std::unique_lock<Mutex>;

  ConditionVariable() = default;
  ConditionVariable(const ConditionVariable&) = delete;
  ConditionVariable& operator=(const ConditionVariable&) = delete;

  void notify_one() {
    if ((state_.fetch_add(kOnce, std::memory_order_acq_rel) & kWaited) != 0) wake_one();
  }

  void notify_all() {
    std::uint32_t before = state_.load(std::memory_order_relaxed);
    while (!state_.compare_exchange_weak(before, (before + kOnce) & ~kWaited,
                                         std::memory_order_acq_rel, std::memory_order_relaxed)) {
    }
    if ((before & kWaited) != 0) wake_all();
  }

  void wait(Lock& lock) { wait_slow(lock, detail::kNever, nullptr); }

  template <std::predicate Done>
  void wait(Lock& lock, Done done) {
    while (!done()) wait(lock);
  }

  // What `done` says in the end: false if stopped or late before.
  template <std::predicate Done>
  bool wait(Lock& lock, const std::stop_token& stop, Done done) {
    return wait_done(lock, detail::kNever, &stop, done);
  }
  template <class Rep, class Period, std::predicate Done>
  bool wait_for(Lock& lock, const std::chrono::duration<Rep, Period>& duration, Done done) {
    return wait_done(lock, detail::deadline_after(duration), nullptr, done);
  }
  template <class Clock, class Duration, std::predicate Done>
  bool wait_until(Lock& lock, const std::chrono::time_point<Clock, Duration>& time, Done done) {
    return wait_done(lock, detail::deadline_at(time), nullptr, done);
  }

 private:
  // The rest counts notifications: who waits looks whether there was one since it gave up the lock.
  static constexpr std::uint32_t kWaited = 1;  // somebody may wait
  static constexpr std::uint32_t kOnce = 2;

  template <class Done>
  bool wait_done(Lock& lock, detail::Deadline deadline, const std::stop_token* stop, Done& done) {
    while (!done()) {
      if (!wait_slow(lock, deadline, stop)) return done();
    }
    return true;
  }

  // False: stopped or late. The lock is held again in either case, and if it throws.
  ATOLL_EXPORT bool wait_slow(Lock& lock, detail::Deadline deadline, const std::stop_token* stop);
  ATOLL_EXPORT void wake_one();
  ATOLL_EXPORT void wake_all();

  std::atomic<std::uint32_t> state_{0};
};

}  // namespace atl
