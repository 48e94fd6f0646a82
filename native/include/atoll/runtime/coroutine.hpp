// C++20 coroutines on the runtime. Atoll brings no coroutine type: use your own.
//
//   Job query(atl::Runtime& runtime) {            // Job: any coroutine type
//     co_await atl::schedule(runtime);            // from here on a task of the runtime
//     const Rows rows = co_await atl::spawn(scan);
//     ...
//   }
//
// `co_await std::move(task)` (task.hpp) waits for a task without a stack: the coroutine is resumed
// by the worker that ended the task, and gets its value or exception. After that it is no task: it
// may compute, spawn, and co_await; to fork, wait, sleep or use task-locals, `schedule` it anew,
// since the Runtime's destructor waits for tasks only.
//
// `co_await schedule(runtime)` goes on as a task of that runtime, with its own stop token and
// task-locals, until the coroutine next suspends or ends. From any thread. Costs a spawn.
#pragma once

#include <coroutine>

#include "atoll/runtime/place.hpp"
#include "atoll/runtime/runtime.hpp"

namespace atl {

class Schedule {
 public:
  Schedule(Runtime& runtime, Place place) : runtime_(runtime), place_(place) {}
  bool await_ready() const { return false; }
  void await_suspend(std::coroutine_handle<> handle) {
    runtime_.spawn(place_, [handle] { handle.resume(); }).detach();
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
