// A counting semaphore: lets a number of tasks in at a time, one for each permit.
//
//   atl::Semaphore readers(4);
//   readers.acquire();
//   ... at most four tasks are here ...
//   readers.release();
//
// Promises
//  - What a thread wrote before `release` is visible to whoever acquires that permit.
//  - Tasks that wait are suspended; threads that are not workers sleep. Both may make all calls.
//    The task that releases a permit need not be the one that acquired it.
//  - Those that wait get permits in any order: one that comes at the right time may overtake them.
//  - A call with a stop token or a time limit returns whether it got the permit.
//  - `acquire` of a free permit, and `release` while nobody waits: one or two atomic operations.
//  - It must outlive all calls.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <stop_token>

#include "atoll/runtime/condition_variable.hpp"
#include "atoll/runtime/export.hpp"

namespace atl {

class Semaphore {
 public:
  // Throws RuntimeFault if there are fewer than 0 permits.
  ATOLL_EXPORT explicit Semaphore(std::ptrdiff_t permits);
  Semaphore(const Semaphore&) = delete;
  Semaphore& operator=(const Semaphore&) = delete;

  bool try_acquire() {
    std::ptrdiff_t free = free_.load();
    while (free > 0) {
      if (free_.compare_exchange_weak(free, free - 1)) return true;
    }
    return false;
  }

  void acquire() {
    if (!try_acquire()) acquire_slow(detail::kNever, {});
  }
  bool acquire(const std::stop_token& stop) {
    return try_acquire() || acquire_slow(detail::kNever, stop);
  }
  template <class Rep, class Period>
  bool acquire_for(const std::chrono::duration<Rep, Period>& duration,
                   const std::stop_token& stop = {}) {
    return try_acquire() || acquire_slow(detail::deadline_after(duration), stop);
  }
  template <class Clock, class Duration>
  bool acquire_until(const std::chrono::time_point<Clock, Duration>& time,
                     const std::stop_token& stop = {}) {
    return try_acquire() || acquire_slow(detail::deadline_at(time), stop);
  }

  // Throws RuntimeFault if `permits` is below 1, or all free ones would be too many to count.
  ATOLL_EXPORT void release(std::ptrdiff_t permits = 1);

 private:
  ATOLL_EXPORT bool acquire_slow(detail::Deadline deadline, const std::stop_token& stop);

  // Sequentially consistent, both: either `release` sees that somebody waits, or the one that is
  // about to wait sees the permit.
  std::atomic<std::ptrdiff_t> free_;
  std::atomic<int> waiting_{0};
  Mutex mutex_;
  ConditionVariable released_;
};

}  // namespace atl
