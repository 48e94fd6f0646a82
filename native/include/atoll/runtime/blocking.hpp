// Blocking sections: code that blocks in the kernel (files, sockets, locks of other libraries) runs
// on a thread of its own; the task is suspended, and its worker runs other tasks meanwhile.
//
//   const ssize_t got = atl::blocking([&] { return pread(file, buffer, bytes, offset); });
//
// Promises
//  - Returns the function's value or throws its exception.
//  - The process has up to 256 such threads and starts one if there are more sections than threads;
//    beyond, sections queue, first in, first out. A thread ends after 5 idle seconds.
//  - On a machine with several NUMA nodes the thread runs on the caller's node, so that the data it
//    reads is in memory near the caller; within the node the kernel may use any idle CPU.
//  - On a thread that is not a worker the function is simply called.
//
// The function runs outside of the task: other thread-locals, another errno (return it, too), no
// fork, spawn or task-locals, and a stop token that never reports a stop. Pass what it needs from
// the task by reference. A section costs waking two threads.
#pragma once

#include <concepts>
#include <type_traits>
#include <utility>

#include "atoll/runtime/detail/result.hpp"
#include "atoll/runtime/export.hpp"

namespace atl {

namespace detail {
// Calls it on a thread of the pool and waits. `call` must not throw. Throws RuntimeFault if no
// thread can be started.
ATOLL_EXPORT void run_blocking(void (*call)(void* closure), void* closure);
}  // namespace detail

template <std::invocable F>
std::invoke_result_t<F&> blocking(F&& function) {
  using Value = std::invoke_result_t<F&>;
  struct Called {
    std::remove_reference_t<F>& call;
    detail::Result<Value> result;
  };
  Called called{function, {}};
  detail::run_blocking(
      [](void* closure) {
        auto* const self = static_cast<Called*>(closure);
        self->result.fill(self->call);
      },
      &called);
  return called.result.take();
}

}  // namespace atl
