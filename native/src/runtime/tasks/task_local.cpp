#include "atoll/runtime/task_local.hpp"

#include <atomic>
#include <cstdint>

#include "atoll/runtime/places.hpp"
#include "scheduler/worker.hpp"

namespace atl::detail {

namespace {

// The context of a thread that is not a worker; no call moves it to another thread.
TaskContext& context_of_thread() {
  thread_local TaskContext context;
  return context;
}

}  // namespace

TaskContext& context_for_locals() {
  WorkerHead* const worker = this_worker();
  if (worker == nullptr) return context_of_thread();
  if (worker->context == nullptr) {
    throw RuntimeFault(
        "a coroutine that awaited a task is not in a task and has no task-locals: keep the value "
        "in the coroutine, or co_await atl::schedule(runtime) first");
  }
  return *worker->context;
}

const void* new_local_key() {
  static std::atomic<std::uintptr_t> last{0};
  return reinterpret_cast<const void*>(last.fetch_add(1, std::memory_order_relaxed) + 1);
}

}  // namespace atl::detail
