// How what a coroutine awaits finds out where the coroutine goes on, and resumes it there.
#pragma once

#include <coroutine>
#include <exception>
#include <type_traits>

#include "atoll/runtime/detail/task_context.hpp"
#include "atoll/runtime/detail/worker.hpp"
#include "atoll/runtime/export.hpp"

namespace atl::detail {

// A coroutine whose promise is a Job may be a part of a task: a Coro. Whoever makes the job ready
// resumes it. `context` is that of the task, null in no task. While the job is in no queue, `link`
// is the coroutine's home: a worker of the task's runtime, and the domain in which the task was
// counted; 0 in no task. Both stay until the task has ended. That need not be so of where the
// coroutine runs meanwhile.
template <class Promise>
Word home_of(std::coroutine_handle<Promise> handle) {
  if constexpr (std::is_base_of_v<Job, Promise>) return handle.promise().link;
  return 0;
}

// The context of its task; null if it is in none.
template <class Promise>
TaskContext* context_of(std::coroutine_handle<Promise> handle) {
  if constexpr (std::is_base_of_v<Job, Promise>) return handle.promise().context;
  return nullptr;
}

// An awaiter that resumes a Coro in the context of its task, at home.
struct KeepsContext {};

// Ends the program with a line that names the coroutine: its promise by the name of a function that
// has it as a template's argument, and its code.
[[noreturn]] ATOLL_EXPORT void fault_left_coroutine(const char* function, void* code) noexcept;

// Resumes a coroutine from a job, which must not throw. After it the awaited may be gone.
template <class Promise>
void resume_from_job(std::coroutine_handle<> handle) noexcept {
  void* const code = *static_cast<void**>(handle.address());  // by the ABI of gcc and clang
  try {
    handle.resume();
  } catch (...) {
    fault_left_coroutine(__PRETTY_FUNCTION__, code);
  }
}

}  // namespace atl::detail
