// The context of a task: its stop token and its task-locals. Forks share their parent's; a spawned
// task and a `run` have their own; a scope has its own stop token and its parent's task-locals.
#pragma once

#include <atomic>
#include <memory>
#include <stop_token>

#include "atoll/runtime/export.hpp"

namespace atl::detail {

// Its members are made at their first use, so that a task that uses none pays two stores. A stop
// request to `upstream` also stops this, and its task-locals are shared; it must outlive this, or
// be null.
class TaskContext {
 public:
  explicit TaskContext(TaskContext* upstream = nullptr) : upstream_(upstream) {}
  TaskContext(const TaskContext&) = delete;
  TaskContext& operator=(const TaskContext&) = delete;
  ~TaskContext() {
    if (stop_.load(std::memory_order_relaxed) != nullptr ||
        locals_.load(std::memory_order_relaxed) != nullptr) [[unlikely]] {
      clear();
    }
  }

  // Any thread. The first call allocates.
  ATOLL_EXPORT std::stop_source stop_source();
  std::stop_token stop_token() { return stop_source().get_token(); }

  // The value of the task-local `key`: what `make(maker)` returned at the first call in this task.
  // Values die with the task, the newest first. Any thread; `make` runs without a lock, and a value
  // that another thread made first is kept instead.
  ATOLL_EXPORT void* local(const void* key, void* (*make)(void* maker), void* maker,
                           void (*drop)(void*));

 private:
  struct Stop;
  struct Local;
  ATOLL_EXPORT void clear();

  TaskContext* upstream_;
  std::atomic<Stop*> stop_{nullptr};
  std::atomic<Local*> locals_{nullptr};
};

}  // namespace atl::detail
