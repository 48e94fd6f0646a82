// Sleeping: the task is suspended, and its worker runs other tasks meanwhile.
//
// A sleep never ends early; it ends late by the delay of the kernel's timer and of the ready queue.
// One timer thread serves the whole process; the first sleep starts it. A thread that is not a
// worker sleeps itself.
#pragma once

#include <chrono>
#include <stop_token>

#include "atoll/runtime/detail/deadline.hpp"
#include "atoll/runtime/export.hpp"

namespace atl {

namespace detail {
ATOLL_EXPORT bool sleep_to(Deadline deadline, const std::stop_token* stop);
}

template <class Rep, class Period>
void sleep_for(const std::chrono::duration<Rep, Period>& duration) {
  detail::sleep_to(detail::deadline_after(duration), nullptr);
}

template <class Clock, class Duration>
void sleep_until(const std::chrono::time_point<Clock, Duration>& time) {
  detail::sleep_to(detail::deadline_at(time), nullptr);
}

// Returns true after a full sleep, false if asked to stop before.
template <class Rep, class Period>
bool sleep_for(const std::chrono::duration<Rep, Period>& duration, const std::stop_token& stop) {
  return detail::sleep_to(detail::deadline_after(duration), &stop);
}

template <class Clock, class Duration>
bool sleep_until(const std::chrono::time_point<Clock, Duration>& time,
                 const std::stop_token& stop) {
  return detail::sleep_to(detail::deadline_at(time), &stop);
}

}  // namespace atl
