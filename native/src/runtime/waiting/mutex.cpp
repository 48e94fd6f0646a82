#include "atoll/runtime/mutex.hpp"

#include "atoll/runtime/places.hpp"
#include "spin.hpp"
#include "wait_on.hpp"

namespace atl {

namespace {

// How often a waiter is overtaken before it gets the mutex by hand-off.
constexpr int kPatience = 3;
// Half a microsecond on CPUs with a long pause (Skylake and later): the cost of a suspension.
constexpr int kMutexSpins = 12;

}  // namespace

void Mutex::lock_slow() {
  // Useful only if the holder runs on another CPU.
  if (runtime::others_running() > 0) {
    for (int spin = 0; spin < kMutexSpins; ++spin) {
      if (try_lock()) return;
      runtime::pause();
    }
  }
  int woken_in_vain = 0;
  bool woken = false;
  std::uint32_t state = state_.load(std::memory_order_relaxed);
  for (;;) {
    const std::uint32_t seen = woken ? state & ~kWoken : state;
    if ((state & kLocked) == 0) {
      if (state_.compare_exchange_weak(state, seen | kLocked, std::memory_order_acquire,
                                       std::memory_order_relaxed)) {
        return;
      }
      continue;
    }
    if (seen != state || (state & kWaited) == 0) {
      if (!state_.compare_exchange_weak(state, seen | kWaited, std::memory_order_relaxed)) continue;
    }
    woken = false;
    const runtime::WaitEnd end = runtime::wait_on(
        state_, kLocked | kWaited, {.mask = kLocked | kWaited, .woken_in_vain = woken_in_vain});
    if (end == runtime::WaitEnd::given) return;  // the queue's lock has ordered it
    if (end == runtime::WaitEnd::woken) {
      woken = true;
      ++woken_in_vain;
    }
    state = state_.load(std::memory_order_relaxed);
  }
}

// While it is held, others only add kWaited and take away kWoken.
void Mutex::unlock_slow() {
  std::uint32_t state = state_.load(std::memory_order_relaxed);
  if ((state & kLocked) == 0) {
    throw RuntimeFault("unlock of a Mutex that is not locked: unlock it once per lock");
  }
  // Nobody to wake, or a woken waiter will see who else waits.
  while ((state & kWaited) == 0 || (state & kWoken) != 0) {
    if (state_.compare_exchange_weak(state, state & ~kLocked, std::memory_order_release,
                                     std::memory_order_relaxed)) {
      return;
    }
  }
  runtime::WaitQueue queue(&state_);
  const runtime::Waiting* const first = queue.first();
  const bool give = first != nullptr && first->woken_in_vain >= kPatience;
  const detail::Waiter waiter =
      queue.take(give ? runtime::WaitEnd::given : runtime::WaitEnd::woken);
  // A thread that has set kWaited but has not queued yet will find it cleared, and try again.
  const std::uint32_t waited = queue.first() != nullptr ? kWaited : 0;
  const std::uint32_t after =
      give ? kLocked | waited : waited | (waiter != detail::Waiter::none ? kWoken : 0);
  // The last access: a thread that locks it from here on may destroy it.
  state_.store(after, std::memory_order_release);
  queue.unlock();
  if (waiter != detail::Waiter::none) detail::resume(waiter);
}

}  // namespace atl
