// A mutex for tasks: a task that has to wait is suspended, and its worker runs something else.
//
//   atl::Mutex mutex;
//   const std::lock_guard lock(mutex);
//
// A task may suspend while it holds the mutex, and unlock it on another worker. A std::mutex must
// not be held across anything that may suspend.
//
// The first to come after an unlock gets the mutex, so that a short section does not wait for a
// suspended task to be scheduled while the mutex is idle (hand-off turns that into convoys: Blasgen
// et al., "The convoy phenomenon", 1979). But the next unlock hands the mutex to a waiter that was
// woken three times in vain, so that no waiter starves. At most one waiter is awake at a time.
//
// Promises
//  - lock, unlock without contention: one atomic operation each. 4 bytes.
//  - Tasks and threads that are not workers may use it. Not recursive: a second lock waits forever.
//  - An unlock by a task that does not hold it is a fault if nobody holds it. It does not know its
//    holder: that would be 8 more bytes and a store per lock, and a fork may unlock for its parent.
//  - The last user may destroy it after its unlock, even if an earlier unlock has not returned.
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

  // Throws RuntimeFault if it is not locked; from a lock_guard that ends the program.
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
  static constexpr std::uint32_t kWoken = 4;   // a woken waiter has not tried yet

  ATOLL_EXPORT void lock_slow();
  ATOLL_EXPORT void unlock_slow();

  std::atomic<std::uint32_t> state_{0};
};

}  // namespace atl
