// Task-local storage: one value per task, on whichever worker it runs.
//
//   inline atl::TaskLocal<Arena> arena([] { return Arena(1 << 20); });
//   ... in a task: arena.get().allocate(64);
//
// Promises
//  - `get` makes the value at its first use in a task, by the function given to the constructor or
//    else by default construction. Several tasks may call that function at once. If it throws,
//    there is no value, and the next `get` tries again.
//  - Forks, children of a scope, loops and all_do share their parent's values; they may run on
//    several workers at once, so changes to a value need a lock.
//  - A task of `spawn` or `run` begins without values. They are destroyed, the newest first, when
//    it is done and its handle is joined or destroyed, on whichever thread does that.
//  - A thread that is not a worker counts as one task: it keeps its values until it ends.
//  - Throws RuntimeFault in a coroutine that continues after `co_await` of a task (coroutine.hpp).
//  - The TaskLocal must outlive its values; preferably it is static. Lookup time is linear in the
//    number of TaskLocals that a task uses.
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
// The context of the caller's task, or of the thread. Throws RuntimeFault in a coroutine.
ATOLL_EXPORT TaskContext& context_for_locals();
// Never repeats; the address of a TaskLocal could be used again while values of it are alive.
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
