// When a wait ends at the latest, on the steady clock.
#pragma once

#include <chrono>
#include <type_traits>

namespace atl::detail {

using Deadline = std::chrono::steady_clock::time_point;
inline constexpr Deadline kNever = Deadline::max();

// A duration from now, never shorter than requested. More than a century is never, since the sum
// might overflow.
template <class Rep, class Period>
Deadline deadline_after(const std::chrono::duration<Rep, Period>& duration) {
  using std::chrono::steady_clock;
  constexpr std::chrono::duration<double> kCentury = std::chrono::hours(24 * 365 * 100);
  if (std::chrono::duration<double>(duration) > kCentury) return kNever;
  return steady_clock::now() + std::chrono::ceil<steady_clock::duration>(duration);
}

// Another clock is read once: who sets it later does not move the deadline.
template <class Clock, class Duration>
Deadline deadline_at(const std::chrono::time_point<Clock, Duration>& time) {
  if constexpr (std::is_same_v<Clock, std::chrono::steady_clock>) {
    return std::chrono::ceil<std::chrono::steady_clock::duration>(time);
  } else {
    return deadline_after(time - Clock::now());
  }
}

}  // namespace atl::detail
