// C++20 coroutines of any type on the runtime. Atoll's own type is Coro (coro.hpp).
//
//   Job query(atl::Runtime& runtime) {            // Job: any coroutine type
//     co_await atl::schedule(runtime);            // from here on a task of the runtime
//     const Rows rows = co_await atl::spawn(scan);
//     ...
//   }
//
// `co_await std::move(task)` (task.hpp) waits for a task without a stack: the worker that ended the
// task resumes the coroutine, which gets its value or exception. After that the coroutine is not a
// task: it may compute, spawn, and co_await. To fork, wait, sleep or use task-locals, `schedule` it
// again, since the Runtime's destructor waits for tasks only.
//
// After `co_await schedule(runtime)`, from any thread, it is a task of that runtime, with its own
// stop token and task-locals, until it next suspends or ends. Costs as much as a spawn. Until it is
// resumed it must not be destroyed.
#pragma once

#include <coroutine>

#include "atoll/runtime/detail/coro_part.hpp"
#include "atoll/runtime/place.hpp"
#include "atoll/runtime/runtime.hpp"

namespace atl {

class Schedule {
 public:
  Schedule(Runtime& runtime, Place place) : runtime_(runtime), place_(place) {}
  bool await_ready() const { return false; }
  template <class Promise>
  void await_suspend(std::coroutine_handle<Promise> handle) {
    runtime_.spawn(place_, [handle] { detail::resume_from_job<Promise>(handle); }).detach();
  }
  void await_resume() const {}

 private:
  Runtime& runtime_;
  Place place_;
};

[[nodiscard]] inline Schedule schedule(Runtime& runtime, Place place = {}) {
  return {runtime, place};
}

}  // namespace atl
