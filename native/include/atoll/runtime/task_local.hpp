// Task-local storage: one value per task, whichever worker it is on.
//
//   inline atl::TaskLocal<Arena> arena([] { return Arena(1 << 20); });
//   ... in a task: arena.get().allocate(64);
//
// Promises
//  - `get` makes the value at the first use in a task: by the function that was given, else by
//    default. Several tasks may call that function at once. If it throws, there is no value, and
//    the next `get` tries again.
//  - Forks, the children of a scope, loops and all_do share their parent's; they may be on several
//    workers at once, so what they change needs a lock.
//  - A task of `spawn` or `run` begins without. Its values are destroyed, the last made first, when
//    it is done and its handle is joined or gone, on whatever thread that is.
//  - A thread that is no worker counts as one task: it has its own values until it ends.
//  - A coroutine that goes on after `co_await` of a task is none: RuntimeFault (coroutine.hpp).
//  - The TaskLocal outlives its values; best it is static. Lookup: linear in how many of them a
//    task uses.
#pragma once

#include <concepts>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

#include "atoll/runtime/detail/task_context.hpp"
#include "atoll/runtime/export.hpp"

namespace atl {

namespace detail {
// Of the task that the caller is in, or of the thread. RuntimeFault in a coroutine.
ATOLL_EXPORT TaskContext& context_for_locals();
// Differs from all before: an address could be used anew while values are alive.
ATOLL_EXPORT const void* new_local_key();
}  // namespace detail

template <class T>
class TaskLocal {
 public:
  TaskLocal()
    requires std::default_initializable<T>
      : make_([] { return std::make_unique<T>(); }) {}

  template <class F>
    requires std::is_invocable_r_v<T, const F&>
  explicit TaskLocal(F initial)
      : make_([initial = std::move(initial)] { return std::unique_ptr<T>(new T(initial())); }) {}

  TaskLocal(const TaskLocal&) = delete;
  TaskLocal& operator=(const TaskLocal&) = delete;

  T& get() {
    return *static_cast<T*>(detail::context_for_locals().local(
        key_, [](void* self) -> void* { return static_cast<TaskLocal*>(self)->make_().release(); },
        this, [](void* value) { delete static_cast<T*>(value); }));
  }
  T& operator*() { return get(); }
  T* operator->() { return &get(); }

 private:
  const void* const key_ = detail::new_local_key();
  const std::function<std::unique_ptr<T>()> make_;
};

}  // namespace atl
