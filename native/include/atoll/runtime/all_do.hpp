// Calls a function once on every worker, or on every worker of a place or group.
//
//   atl::all_do([&](int worker) { tables[worker] = Table(rows); });  // memory on its node
//   atl::all_do(atl::on_chiplet(2), [&](int rank, int size, atl::Barrier& barrier) {
//     ... part `rank` of `size` ...
//     barrier.arrive_and_wait();
//   });
//
// The function takes the rank alone; or the rank and the size; or these and a Barrier of all calls.
// Ranks are those of the runtime's workers; at a place or in a group they count its workers from 0,
// in the order of their ranks in the runtime. runtime.all_do and group.all_do do the same, from any
// thread.
//
// Promises
//  - The function is called on each worker of the caller's runtime, including the caller's own, or
//    of the place, and stays there even if it waits. all_do returns when all calls are done.
//  - The workers of a place or group are those at the time of the call.
//  - Workers make the call between tasks, so a worker with a long task makes everybody wait. Do not
//    call all_do while holding something that such a task waits for.
//  - The calls run at the same time and are part of the caller's task. all_do throws the first
//    exception of a call; the other calls run to their end. A call that throws does not arrive at
//    the barrier: do not let it leave others there.
//  - On a thread that is not a worker, use runtime.all_do(f).
#pragma once

#include <concepts>
#include <memory>
#include <type_traits>
#include <utility>

#include "atoll/runtime/barrier.hpp"
#include "atoll/runtime/export.hpp"
#include "atoll/runtime/place.hpp"

namespace atl {

namespace detail {

struct Share {
  int rank;
  int size;
  Barrier* barrier;  // null unless it was wanted
};
ATOLL_EXPORT void all_do(Place place, bool barrier, void (*call)(void* closure, const Share& share),
                         void* closure);

template <class F>
concept ForAll =
    std::invocable<F, int> || std::invocable<F, int, int> || std::invocable<F, int, int, Barrier&>;

}  // namespace detail

// Throws RuntimeFault outside of a task, or if the runtime has no such place.
template <detail::ForAll F>
void all_do(Place place, F&& function) {
  using Function = std::remove_reference_t<F>;
  constexpr bool kBarrier = std::invocable<F, int, int, Barrier&>;
  detail::all_do(
      place, kBarrier,
      [](void* closure, const detail::Share& share) {
        Function& call = *static_cast<Function*>(closure);
        if constexpr (kBarrier) {
          call(share.rank, share.size, *share.barrier);
        } else if constexpr (std::invocable<F, int, int>) {
          call(share.rank, share.size);
        } else {
          call(share.rank);
        }
      },
      const_cast<std::remove_const_t<Function>*>(std::addressof(function)));
}

template <detail::ForAll F>
void all_do(F&& function) {
  all_do(Place{}, std::forward<F>(function));
}

}  // namespace atl
