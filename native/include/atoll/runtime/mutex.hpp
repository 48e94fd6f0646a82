// A mutex for tasks: who has to wait is suspended, and its worker runs something else.
//
//   atl::Mutex mutex;
//   const std::lock_guard lock(mutex);
//
// A task may suspend while it holds the mutex, and unlock it on another worker: unlike std::mutex,
// which a task must not hold across anything that may suspend.
//
// Who gets it: whoever comes first after an unlock, so that a short section does not wait for a
// suspended task to be scheduled while the mutex lies idle (hand-off makes convoys of that: Blasgen
// et al., "The convoy phenomenon", 1979). But a waiter that was woken in vain three times is handed
// the mutex with the next unlock, so that nobody starves. At most one waiter is on its way at a
// time.
//
// Promises
//  - lock, unlock without contention: one atomic operation each. 4 bytes.
//  - Works from tasks and threads that are no workers. Not recursive: the second lock waits
//  forever.
//  - Who has locked and unlocked it last may destroy it, also while an earlier unlock still
//  returns.
#pragma once

#include <atomic>
#include <cstdint>

#include "atoll/runtime/export.hpp"

namespace atl {

class Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void lock() {
    std::uint32_t free = 0;
    if (!state_.compare_exchange_strong(free, kLocked, std::memory_order_acquire,
                                        std::memory_order_relaxed)) [[unlikely]] {
      lock_slow();
    }
  }

  bool try_lock() {
    std::uint32_t state = state_.load(std::memory_order_relaxed);
    while ((state & kLocked) == 0) {
      if (state_.compare_exchange_weak(state, state | kLocked, std::memory_order_acquire,
                                       std::memory_order_relaxed)) {
        return true;
      }
    }
    return false;
  }

  void unlock() {
    std::uint32_t held = kLocked;
    if (!state_.compare_exchange_strong(held, 0, std::memory_order_release,
                                        std::memory_order_relaxed)) [[unlikely]] {
      unlock_slow();
    }
  }

 private:
  static constexpr std::uint32_t kLocked = 1;
  static constexpr std::uint32_t kWaited = 2;  // somebody may wait
  static constexpr std::uint32_t kWoken = 4;   // a woken waiter has not looked yet

  ATOLL_EXPORT void lock_slow();
  ATOLL_EXPORT void unlock_slow();

  std::atomic<std::uint32_t> state_{0};
};

}  // namespace atl
