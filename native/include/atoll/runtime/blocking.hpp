// Blocking sections: code that sits in the kernel (files, sockets, locks of other libraries) runs
// on a thread of its own; the task is suspended, its worker runs others meanwhile.
//
//   const ssize_t got = atl::blocking([&] { return pread(file, buffer, bytes, offset); });
//
// Promises
//  - The value comes back, or what the function threw.
//  - Up to 256 threads for the whole process, started when there are more sections than threads;
//    then sections wait in line, first in, first out. A thread leaves after 5 idle seconds.
//  - On a machine with several NUMA nodes the thread runs on the caller's node, so that what it
//    reads lands in the memory the caller works on; within the node the kernel may put it on any
//    CPU that has nothing to do.
//  - On a thread that is no worker the function is simply called.
//
// The function runs outside of the task: other thread-locals, another errno (return it along), no
// fork, spawn or task-locals, a stop token that never says so; take what it needs of the task by
// reference. Two threads have to be woken.
#pragma once

#include <concepts>
#include <type_traits>
#include <utility>

#include "atoll/runtime/detail/result.hpp"
#include "atoll/runtime/export.hpp"

namespace atl {

namespace detail {
// Calls it on a thread of the pool and waits. `call` lets no exception out. RuntimeFault: not one
// thread can be started.
ATOLL_EXPORT void run_blocking(void (*call)(void* closure), void* closure);
}  // namespace detail

template <std::invocable F>
std::invoke_result_t<F&> blocking(F&& function) {
  using Value = std::invoke_result_t<F&>;
  struct Section {
    std::remove_reference_t<F>& function;
    detail::Result<Value> result;
  };
  Section section{function, {}};
  detail::run_blocking(
      [](void* closure) {
        auto* const self = static_cast<Section*>(closure);
        self->result.fill(self->function);
      },
      &section);
  return section.result.take();
}

}  // namespace atl
