#include "atoll/runtime/this_task.hpp"

#include <thread>

#include "atoll/runtime/detail/task_context.hpp"
#include "scheduler/worker.hpp"

namespace atl {

using runtime::Worker;

void yield() {
  if (Worker* const worker = Worker::here()) {
    worker->yield();
  } else {
    std::this_thread::yield();
  }
}

namespace this_task {

bool inside() { return Worker::here() != nullptr; }

int worker() { return static_cast<Worker*>(detail::worker_or_fault("this_task::worker"))->rank; }

int core() { return static_cast<Worker*>(detail::worker_or_fault("this_task::core"))->core(); }

std::stop_token stop_token() {
  Worker* const worker = Worker::here();
  return worker == nullptr || worker->context == nullptr ? std::stop_token()
                                                         : worker->context->stop_token();
}

}  // namespace this_task

}  // namespace atl
