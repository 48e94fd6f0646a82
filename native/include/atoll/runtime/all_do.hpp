// The same on every worker, once.
//
//   atl::all_do([&](int worker) { tables[worker] = Table(rows); });  // memory on each one's node
//
// Promises
//  - f(rank) is called on each worker of the caller's runtime, the caller's own included, and stays
//    there even if it waits. Returns when all calls are done.
//  - Workers come to it between tasks: one that runs a long task makes everybody wait. So do not
//    call it while holding what those tasks wait for.
//  - The calls run at the same time and are part of the caller's task. What the first that failed
//    threw comes out; the others run to their end.
//  - From a thread that is no worker: runtime.run([&] { atl::all_do(f); }).
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
