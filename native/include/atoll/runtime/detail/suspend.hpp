// The one interface for waiting: suspend the task, publish a handle of it for whoever ends the
// wait, run other tasks, and be resumed. Barrier, latch, event, mutex, join, sleep and coroutines
// are built on it.
//
// A thread that is not a worker can wait, too: it blocks on a futex. So every primitive works on
// every thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <type_traits>

#include "atoll/runtime/export.hpp"

namespace atl::detail {

struct Job;

// A waiting task (or thread). Opaque.
enum class Waiter : std::uintptr_t { none = 0 };

// Saves the caller's stack and calls `publish(closure, handle)` on another stack. Once `publish`
// shares the handle, any thread may call `resume` for it, exactly once, even before `publish` has
// returned; so `publish` must not touch the caller's frame after that. It returns false if there is
// nothing to wait for and it did not share the handle. `publish` must not suspend, throw or take
// long. Throws RuntimeFault, without calling `publish`, if there is no stack to continue on.
ATOLL_EXPORT void suspend(bool (*publish)(void* closure, Waiter handle), void* closure);

template <class Publish>
void suspend(Publish&& publish) {
  using Closure = std::remove_reference_t<Publish>;
  suspend([](void* closure, Waiter handle) { return (*static_cast<Closure*>(closure))(handle); },
          &publish);
}

// Makes the task ready again: on this worker if it may run here, else elsewhere. Any thread.
ATOLL_EXPORT void resume(Waiter handle);

// A waiter whose `resume` makes the job ready: for waiting without a stack (coroutines). Until then
// the job's `link` is the word of a worker of its runtime, with its domain, or 0: then the job goes
// to the runtime of the worker that resumes it, and on another thread it is called there.
ATOLL_EXPORT Waiter waiter_of(Job* job);
// A waiter whose `resume` calls the job, which must not suspend, throw or take long.
ATOLL_EXPORT Waiter call_of(Job* job);

// Done or not, with at most one waiter: all that waiting for a task needs, in 8 bytes.
class Completion {
 public:
  bool done() const { return state_.load(std::memory_order_acquire) == kDone; }

  void wait() {
    if (!done()) wait_slow();
  }

  // Registers a waiter that has no stack. Returns false, without doing so, if it is already done.
  bool leave(Waiter waiter) {
    std::uintptr_t running = kRunning;
    return state_.compare_exchange_strong(running, static_cast<std::uintptr_t>(waiter),
                                          std::memory_order_acq_rel, std::memory_order_acquire);
  }

  // For a waiter that there is from the beginning, and that whoever completes goes on with: a
  // coroutine that awaits another one, by its address. Then the other calls are for nobody.
  void expect(void* waiter) {
    state_.store(reinterpret_cast<std::uintptr_t>(waiter), std::memory_order_relaxed);
  }
  void* expected() const { return reinterpret_cast<void*>(state_.load(std::memory_order_relaxed)); }

  // Takes the waiter back. False: the thread that completes resumes it.
  bool take_back(Waiter waiter) {
    auto left = static_cast<std::uintptr_t>(waiter);
    return state_.compare_exchange_strong(left, kRunning, std::memory_order_acq_rel);
  }

  // Declares that nobody will wait. True: it is already done, so the caller has to clean up; false:
  // the thread that completes has to.
  bool abandon() { return state_.exchange(kAbandoned, std::memory_order_acq_rel) == kDone; }

  // Publishes what was written before to the waiter. True: nobody will wait, and the caller has to
  // clean up. Else do not touch *this any more: the waiter may have freed it.
  bool complete() {
    std::uintptr_t before = state_.load(std::memory_order_acquire);
    // A fiber that waits stays where it is, and nobody else changes the state then.
    if (before > kAbandoned && (before & 3) == 0) {
      state_.store(kDone, std::memory_order_release);
    } else {
      before = state_.exchange(kDone, std::memory_order_acq_rel);
    }
    if (before == kRunning) return false;
    if (before == kAbandoned) return true;
    resume(Waiter{before});
    return false;
  }

 private:
  static constexpr std::uintptr_t kRunning = 0;  // else: done, abandoned, or a Waiter
  static constexpr std::uintptr_t kDone = 8;
  static constexpr std::uintptr_t kAbandoned = 16;
  // Has to wait, since the thread that completes still writes to what the caller would destroy. So
  // if there is no stack to wait with, the program ends.
  ATOLL_EXPORT void wait_slow() noexcept;

  std::atomic<std::uintptr_t> state_{kRunning};
};

}  // namespace atl::detail
