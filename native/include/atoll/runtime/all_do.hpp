// Calls a function once on every worker.
//
//   atl::all_do([&](int worker) { tables[worker] = Table(rows); });  // memory on its node
//
// Promises
//  - f(rank) is called on each worker of the caller's runtime, including the caller's own, and
//    stays there even if it waits. all_do returns when all calls are done.
//  - Workers make the call between tasks, so a worker with a long task makes everybody wait. Do not
//    call all_do while holding something that such a task waits for.
//  - The calls run at the same time and are part of the caller's task. all_do throws the first
//    exception of a call; the other calls run to their end.
//  - On a thread that is not a worker, use runtime.run([&] { atl::all_do(f); }).
#pragma once

#include <concepts>
#include <memory>
#include <type_traits>

#include "atoll/runtime/export.hpp"

namespace atl {

namespace detail {
ATOLL_EXPORT void all_do(void (*call)(void* closure, int rank), void* closure);
}

template <std::invocable<int> F>
void all_do(F&& function) {
  using Function = std::remove_reference_t<F>;
  detail::all_do([](void* closure, int rank) { (*static_cast<Function*>(closure))(rank); },
                 const_cast<std::remove_const_t<Function>*>(std::addressof(function)));
}

}  // namespace atl
