// What a task carries along: its stop token and its task-locals. Forks share their parent's; a
// spawned task and a `run` have their own; a scope has a stop token of its own, and its parent's
// task-locals.
#pragma once

#include <atomic>
#include <memory>
#include <stop_token>

#include "atoll/runtime/export.hpp"

namespace atl::detail {

// Everything in it is made at the first use, so that a task that asks for none pays two stores.
// `upstream`: a request to stop there is one here, too, and its task-locals are those here; it must
// outlive this, or be null.
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

  // Any thread. Allocates at the first call.
  ATOLL_EXPORT std::stop_source stop_source();
  std::stop_token stop_token() { return stop_source().get_token(); }

  // The slot of the task-local that is known by `key`: what `make(maker)` gave at the first call
  // in this task. Values die with the task, the last made first. Any thread; `make` runs without a
  // lock held, and what it made in vain is dropped.
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
