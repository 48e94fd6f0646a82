// Waits for several tasks at once: when_all and when_any.
//
//   auto [rows, keys] = atl::when_all(atl::spawn(scan), atl::spawn(read_keys));
//   std::vector<atl::Task<Rows>> replicas = ...;
//   const Rows first = replicas[atl::when_any(replicas)].join();
//
// Any task or thread may call them; it is suspended meanwhile.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <exception>
#include <optional>
#include <ranges>
#include <span>
#include <stop_token>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "atoll/runtime/detail/deadline.hpp"
#include "atoll/runtime/export.hpp"
#include "atoll/runtime/task.hpp"

namespace atl {

namespace detail {

template <class Tasks>
using ValueOfTasks = decltype(std::declval<std::ranges::range_reference_t<Tasks&>>().join());

// The index of the first that is done, or nothing if it was stopped or late. Throws RuntimeFault if
// there are none or somebody waits for one already.
ATOLL_EXPORT std::optional<std::size_t> wait_for_any(std::span<Completion* const> tasks,
                                                     Deadline deadline,
                                                     const std::stop_token& stop);

template <std::ranges::sized_range Tasks>
std::optional<std::size_t> wait_for_any_of(Tasks& tasks, Deadline deadline,
                                           const std::stop_token& stop) {
  std::vector<Completion*> completions;
  completions.reserve(std::ranges::size(tasks));
  for (auto& task : tasks) completions.push_back(&task.completion("when_any"));
  return wait_for_any(completions, deadline, stop);
}

template <class Value>
using Kept = std::conditional_t<std::is_void_v<Value>, std::monostate, Value>;

// Joins; the first exception is kept for later.
template <class Value>
auto join_for_all(Task<Value>& task, std::exception_ptr& failed) {
  if (failed) task.request_stop();
  std::optional<Kept<Value>> kept;
  try {
    if constexpr (std::is_void_v<Value>) {
      task.join();
      kept.emplace();
    } else {
      kept.emplace(task.join());
    }
  } catch (...) {
    if (!failed) failed = std::current_exception();
  }
  return kept;
}

}  // namespace detail

// Joins all tasks and returns their values in order; void for tasks without. Throws the exception
// of the first, in the order given, that failed, once all have ended; those after it are asked to
// stop.
template <std::ranges::sized_range Tasks>
auto when_all(Tasks&& tasks) {
  using Value = detail::ValueOfTasks<Tasks>;
  std::exception_ptr failed;
  if constexpr (std::is_void_v<Value>) {
    for (auto& task : tasks) detail::join_for_all(task, failed);
    if (failed) std::rethrow_exception(failed);
  } else {
    std::vector<Value> values;
    values.reserve(std::ranges::size(tasks));
    for (auto& task : tasks) {
      auto value = detail::join_for_all(task, failed);
      if (value) values.push_back(std::move(*value));
    }
    if (failed) std::rethrow_exception(failed);
    return values;
  }
}

// The same for tasks of different types: a tuple, with std::monostate for a task without a value.
template <class... Values>
auto when_all(Task<Values>... tasks) {
  std::exception_ptr failed;
  auto kept = std::tuple{detail::join_for_all(tasks, failed)...};  // braces: from left to right
  if (failed) std::rethrow_exception(failed);
  // Not deduced: that would make a tuple of two of one pair.
  using All = std::tuple<detail::Kept<Values>...>;
  return std::apply([](auto&... each) { return All(std::move(*each)...); }, kept);
}

// Waits until one of the tasks is done and returns its index, the lowest if several are done
// already. All of them can still be joined. Throws RuntimeFault if there are none, if one has been
// joined, detached or moved from, or if somebody else waits for one. O(number of tasks).
template <std::ranges::sized_range Tasks>
std::size_t when_any(Tasks& tasks) {
  return *detail::wait_for_any_of(tasks, detail::kNever, {});
}
template <class... Values>
std::size_t when_any(Task<Values>&... tasks) {
  const std::array completions{&tasks.completion("when_any")...};
  return *detail::wait_for_any(completions, detail::kNever, {});
}
// The same; nothing if it was stopped, or late, before one was done.
template <std::ranges::sized_range Tasks>
std::optional<std::size_t> when_any(Tasks& tasks, const std::stop_token& stop) {
  return detail::wait_for_any_of(tasks, detail::kNever, stop);
}
template <std::ranges::sized_range Tasks, class Rep, class Period>
std::optional<std::size_t> when_any_for(Tasks& tasks,
                                        const std::chrono::duration<Rep, Period>& duration,
                                        const std::stop_token& stop = {}) {
  return detail::wait_for_any_of(tasks, detail::deadline_after(duration), stop);
}
template <std::ranges::sized_range Tasks, class Clock, class Duration>
std::optional<std::size_t> when_any_until(Tasks& tasks,
                                          const std::chrono::time_point<Clock, Duration>& time,
                                          const std::stop_token& stop = {}) {
  return detail::wait_for_any_of(tasks, detail::deadline_at(time), stop);
}

}  // namespace atl
