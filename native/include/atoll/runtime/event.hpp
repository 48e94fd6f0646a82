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
//  - `set`, `is_set`, and `wait` on a set event: one atomic operation. 4 bytes.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <stop_token>

#include "atoll/runtime/detail/deadline.hpp"
#include "atoll/runtime/export.hpp"

namespace atl {

class Event {
 public:
  Event() = default;
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  void set() {
    std::uint32_t before = state_.load(std::memory_order_relaxed);
    // Release, and a write even if it is already set: each `set` publishes what its caller wrote.
    // Acquire: it also passes on what earlier ones published.
    while (!state_.compare_exchange_weak(before, ((before & ~kBits) + kOnce) | kSet,
                                         std::memory_order_acq_rel, std::memory_order_relaxed)) {
    }
    if ((before & kWaited) != 0) [[unlikely]]
      wake();
  }

  void reset() { state_.fetch_and(~kSet, std::memory_order_relaxed); }

  bool is_set() const { return (state_.load(std::memory_order_acquire) & kSet) != 0; }

  void wait() {
    if (!is_set()) wait_slow(detail::kNever, nullptr);
  }
  bool wait(const std::stop_token& stop) { return is_set() || wait_slow(detail::kNever, &stop); }

  template <class Rep, class Period>
  bool wait_for(const std::chrono::duration<Rep, Period>& duration,
                const std::stop_token& stop = {}) {
    return is_set() || wait_slow(detail::deadline_after(duration), &stop);
  }
  template <class Clock, class Duration>
  bool wait_until(const std::chrono::time_point<Clock, Duration>& time,
                  const std::stop_token& stop = {}) {
    return is_set() || wait_slow(detail::deadline_at(time), &stop);
  }

 private:
  // The other bits count the sets, so that a waiter sees one even after a reset.
  static constexpr std::uint32_t kSet = 1;
  static constexpr std::uint32_t kWaited = 2;  // somebody may wait
  static constexpr std::uint32_t kBits = kSet | kWaited;
  static constexpr std::uint32_t kOnce = 4;

  ATOLL_EXPORT bool wait_slow(detail::Deadline deadline, const std::stop_token* stop);
  ATOLL_EXPORT void wake();

  std::atomic<std::uint32_t> state_{0};
};

}  // namespace atl
