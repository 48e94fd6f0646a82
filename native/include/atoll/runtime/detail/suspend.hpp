// The one seam by which anything waits: suspend the task, publish a handle of it where whoever
// ends the wait will find it, go on elsewhere, be resumed. Barrier, latch, event, mutex, join,
// sleep and coroutines are written on it.
//
// A thread that is no worker can wait, too: then the thread itself blocks on a futex. So every
// primitive works from everywhere.
#pragma once

#include <atomic>
#include <cstdint>
#include <type_traits>

#include "atoll/runtime/export.hpp"

namespace atl::detail {

struct Job;

// A task (or thread) that waits. Opaque.
enum class Waiter : std::uintptr_t { none = 0 };

// Calls `publish(closure, handle)` when the caller's stack is saved, on another stack. From the
// moment that `publish` lets the handle out, `resume` may be called for it: exactly once, by
// anyone, also before `publish` has returned; so `publish` must not touch the caller's frame
// after that. Returning false means 'there is nothing to wait for' (the handle is not out).
// `publish` must not suspend, throw or take long. RuntimeFault: there is no stack to go on with;
// then `publish` was not called.
ATOLL_EXPORT void suspend(bool (*publish)(void* closure, Waiter handle), void* closure);

template <class Publish>
void suspend(Publish&& publish) {
  using Closure = std::remove_reference_t<Publish>;
  suspend([](void* closure, Waiter handle) { return (*static_cast<Closure*>(closure))(handle); },
          &publish);
}

// Makes the task ready again: on this worker if it may run here, else where it may; any thread.
ATOLL_EXPORT void resume(Waiter handle);

// Pushes the job, as if it had been resumed: for what waits without a stack (coroutines).
ATOLL_EXPORT Waiter waiter_of(Job* job);

// Done or not, with at most one waiter: the whole of 'wait until it is done' in 8 bytes.
class Completion {
 public:
  bool done() const { return state_.load(std::memory_order_acquire) == kDone; }

  void wait() {
    if (!done()) wait_slow();
  }

  // Leaves a waiter that is no stack. False: it is done, and nothing was left.
  bool leave(Waiter waiter) {
    std::uintptr_t running = kRunning;
    return state_.compare_exchange_strong(running, static_cast<std::uintptr_t>(waiter),
                                          std::memory_order_acq_rel, std::memory_order_acquire);
  }

  // Nobody will wait. True: it is done already, so that the caller has to clean up; false: who
  // completes has to.
  bool abandon() { return state_.exchange(kAbandoned, std::memory_order_acq_rel) == kDone; }

  // What was written before is seen by who waited. True: nobody will wait, the caller has to
  // clean up. Else *this must not be touched any more: the waiter may have freed it.
  bool complete() {
    const std::uintptr_t before = state_.exchange(kDone, std::memory_order_acq_rel);
    if (before == kRunning) return false;
    if (before == kAbandoned) return true;
    resume(Waiter{before});
    return false;
  }

 private:
  static constexpr std::uintptr_t kRunning = 0;  // else: done, abandoned, or a Waiter
  static constexpr std::uintptr_t kDone = 8;
  static constexpr std::uintptr_t kAbandoned = 16;
  // No way out but to wait: who completes still writes to what the caller would destroy. So where
  // there is no stack to wait with, the program ends.
  ATOLL_EXPORT void wait_slow() noexcept;

  std::atomic<std::uintptr_t> state_{kRunning};
};

}  // namespace atl::detail
