// A condition variable for tasks and Mutex, with the calls of std::condition_variable_any.
//
//   std::unique_lock lock(mutex);
//   filled.wait(lock, [&] { return !queue.empty(); });
//
// Promises
//  - A wait may end spuriously; the calls that take a predicate check it again.
//  - Tasks and threads that are not workers may use it. It may be destroyed once every wait has
//    returned, even if the `notify_all` that ended it has not.
//  - A notify without waiters is one atomic operation. 4 bytes.
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

  // Returns the last value of `done`: false if the wait was stopped or timed out first.
  template <std::predicate Done>
  bool wait(Lock& lock, const std::stop_token& stop, Done done) {
    return wait_done(lock, detail::kNever, &stop, done);
  }
  template <class Rep, class Period, std::predicate Done>
  bool wait_for(Lock& lock, const std::chrono::duration<Rep, Period>& duration, Done done,
                const std::stop_token& stop = {}) {
    return wait_done(lock, detail::deadline_after(duration), &stop, done);
  }
  template <class Clock, class Duration, std::predicate Done>
  bool wait_until(Lock& lock, const std::chrono::time_point<Clock, Duration>& time, Done done,
                  const std::stop_token& stop = {}) {
    return wait_done(lock, detail::deadline_at(time), &stop, done);
  }

 private:
  // The other bits count notifications: a waiter checks for one since it released the lock.
  static constexpr std::uint32_t kWaited = 1;  // somebody may wait
  static constexpr std::uint32_t kOnce = 2;

  template <class Done>
  bool wait_done(Lock& lock, detail::Deadline deadline, const std::stop_token* stop, Done& done) {
    while (!done()) {
      if (!wait_slow(lock, deadline, stop)) return done();
    }
    return true;
  }

  // False: stopped or timed out. The lock is held again in any case, also if this throws.
  ATOLL_EXPORT bool wait_slow(Lock& lock, detail::Deadline deadline, const std::stop_token* stop);
  ATOLL_EXPORT void wake_one();
  ATOLL_EXPORT void wake_all();

  std::atomic<std::uint32_t> state_{0};
};

}  // namespace atl
