// Sleeping: the task is suspended, its worker runs others meanwhile.
//
// Never too early; late by what the kernel's timer and the queue of ready tasks cost. One timer
// thread for the whole process, started by the first sleep. A thread that is no worker sleeps
// itself.
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

// True: slept to the end; false: asked to stop before.
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
