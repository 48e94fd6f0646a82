// The context of a task: its stop token and its task-locals. Forks share their parent's; a spawned
// task and a `run` have their own; a scope has its own stop token and its parent's task-locals.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <stop_token>
#include <utility>

#include "atoll/runtime/export.hpp"

namespace atl::detail {

// Its members are made at their first use, so that a task that uses none pays two stores. A stop
// request to `upstream` also stops this, and its task-locals are shared; it must outlive this, or
// be null.
class TaskContext {
 public:
  explicit TaskContext(TaskContext* upstream = nullptr) : TaskContext(upstream, kUpstream) {}
  TaskContext(const TaskContext&) = delete;
  TaskContext& operator=(const TaskContext&) = delete;
  ~TaskContext() {
    if (stop_.load(std::memory_order_relaxed) != nullptr || has_locals()) [[unlikely]]
      clear();
  }

  // Any thread. The first call allocates.
  ATOLL_EXPORT std::stop_source stop_source();
  std::stop_token stop_token() { return stop_source().get_token(); }
  // Any thread; neither allocates. A request may call the stop callbacks of users.
  ATOLL_EXPORT void request_stop() noexcept;
  ATOLL_EXPORT bool stop_requested() const noexcept;

  // Whether this is `other`, or that of siblings inside it: then `other` ends only after this.
  bool is_part_of(const TaskContext& other) const noexcept {
    const TaskContext* at = this;
    while (at != nullptr && at != &other) at = at->upstream();
    return at != nullptr;
  }
  bool is_directly_in(const TaskContext* other) const noexcept { return upstream() == other; }
  // Whether this, which siblings share, was made by the code that is in `here` now: Stoppable parts
  // may have begun or ended since.
  bool was_made_in(const TaskContext& here) const noexcept {
    const TaskContext* const maker = upstream();
    return maker != nullptr && &maker->without_parts() == &here.without_parts();
  }

  // The value of the task-local `key`: what `make(maker)` returned at the first call in this task.
  // Values die with the task, the newest first. Any thread; `make` runs without a lock, and a value
  // that another thread made first is kept instead.
  ATOLL_EXPORT void* local(const void* key, void* (*make)(void* maker), void* maker,
                           void (*drop)(void*));

 protected:
  static constexpr std::uintptr_t kUpstream = 1;
  static constexpr std::uintptr_t kSiblings = 2;
  TaskContext(TaskContext* upstream, std::uintptr_t marks) : locals_(locals_of(upstream, marks)) {}

 private:
  struct Stop;
  struct Local;
  static Stop asked_;  // its address stands for a request that came before the first token
  ATOLL_EXPORT void clear();

  // The nearest, from this on, that is no Stoppable part: siblings', or the task's own.
  const TaskContext& without_parts() const noexcept {
    const TaskContext* at = this;
    while (at->upstream() != nullptr && (at->bits() & kSiblings) == 0) at = at->upstream();
    return *at;
  }

  // One word has the newest of its own locals or, marked, its upstream, whose locals are used then:
  // so a task that captures a pointer and returns nothing fits into a cache line.
  static Local* locals_of(TaskContext* upstream, std::uintptr_t marks) {
    if (upstream == nullptr) return nullptr;
    return reinterpret_cast<Local*>(reinterpret_cast<std::uintptr_t>(upstream) | marks);
  }
  std::uintptr_t bits() const noexcept {
    // Relaxed: an upstream is there from the beginning.
    return reinterpret_cast<std::uintptr_t>(locals_.load(std::memory_order_relaxed));
  }
  TaskContext* upstream() const noexcept {
    if ((bits() & kUpstream) == 0) return nullptr;
    return reinterpret_cast<TaskContext*>(bits() & ~(kUpstream | kSiblings));
  }
  bool has_locals() const noexcept {
    return locals_.load(std::memory_order_acquire) != nullptr && upstream() == nullptr;
  }

  std::atomic<Stop*> stop_{nullptr};
  std::atomic<Local*> locals_;
};

// The context of siblings that stop at the first exception: a scope's children, a loop's pieces.
class SiblingContext : public TaskContext {
 public:
  explicit SiblingContext(TaskContext* upstream) : TaskContext(upstream, kUpstream | kSiblings) {}

  // Keeps the first exception. It comes before the request, and so before what the request causes.
  void fail(std::exception_ptr exception) noexcept {
    // Relaxed: `exception_` is read when all siblings are done.
    if (failed_.exchange(true, std::memory_order_relaxed)) return;
    exception_ = std::move(exception);
    request_stop();
  }
  bool failed() const { return failed_.load(std::memory_order_relaxed); }
  // When all siblings are done.
  [[noreturn]] void rethrow() {
    failed_.store(false, std::memory_order_relaxed);
    std::rethrow_exception(std::exchange(exception_, nullptr));
  }

 private:
  std::atomic<bool> failed_{false};
  std::exception_ptr exception_;
};

}  // namespace atl::detail
