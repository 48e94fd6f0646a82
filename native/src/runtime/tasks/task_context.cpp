#include "atoll/runtime/detail/task_context.hpp"

#include <optional>
#include <utility>

namespace atl::detail {

struct TaskContext::Stop {
  struct Forward {
    std::stop_source* source;
    void operator()() const { source->request_stop(); }
  };
  std::stop_source source;
  std::optional<std::stop_callback<Forward>> upstream;
};

struct TaskContext::Local {
  const void* key;
  void* value;
  void (*drop)(void*);
  Local* older;
};

TaskContext::Stop TaskContext::asked_{std::stop_source(std::nostopstate), {}};

std::stop_source TaskContext::stop_source() {
  Stop* stop = stop_.load(std::memory_order_acquire);
  if (stop != nullptr && stop != &asked_) return stop->source;
  auto made = std::make_unique<Stop>();
  if (TaskContext* const above = upstream(); above != nullptr)
    made->upstream.emplace(above->stop_token(), Stop::Forward{&made->source});
  for (;;) {
    if (stop == &asked_) made->source.request_stop();
    // Of several threads that make one, the first wins.
    if (stop_.compare_exchange_strong(stop, made.get(), std::memory_order_acq_rel,
                                      std::memory_order_acquire)) {
      return made.release()->source;
    }
    if (stop != &asked_) return stop->source;
  }
}

void TaskContext::request_stop() noexcept {
  Stop* stop = nullptr;
  // Release: what the requester wrote before, as with a stop source.
  if (stop_.compare_exchange_strong(stop, &asked_, std::memory_order_acq_rel,
                                    std::memory_order_acquire) ||
      stop == &asked_) {
    return;
  }
  // A copy: the context lives until its task has ended, which this request may bring about.
  std::stop_source(stop->source).request_stop();
}

bool TaskContext::stop_requested() const noexcept {
  for (const TaskContext* at = this; at != nullptr; at = at->upstream()) {
    const Stop* const stop = at->stop_.load(std::memory_order_acquire);
    if (stop == &asked_ || (stop != nullptr && stop->source.stop_requested())) return true;
  }
  return false;
}

void* TaskContext::local(const void* key, void* (*make)(void*), void* maker, void (*drop)(void*)) {
  if (TaskContext* const above = upstream()) return above->local(key, make, maker, drop);
  Local* newest = locals_.load(std::memory_order_acquire);
  const auto find = [key](Local* from, const Local* until) -> Local* {
    while (from != until && from->key != key) from = from->older;
    return from == until ? nullptr : from;
  };
  if (Local* found = find(newest, nullptr)) return found->value;
  auto mine = std::unique_ptr<Local>(new Local{key, nullptr, drop, newest});
  mine->value = make(maker);
  for (;;) {
    if (locals_.compare_exchange_weak(mine->older, mine.get(), std::memory_order_acq_rel,
                                      std::memory_order_acquire)) {
      return mine.release()->value;
    }
    if (Local* found = find(mine->older, newest)) {
      drop(mine->value);
      return found->value;
    }
  }
}

void TaskContext::clear() {
  // Takes them from the list one by one: a destructor may use those that are left, or make more.
  while (has_locals()) {
    Local* const local = locals_.load(std::memory_order_acquire);
    locals_.store(local->older, std::memory_order_release);
    local->drop(local->value);
    delete local;
  }
  Stop* const stop = stop_.load(std::memory_order_acquire);
  if (stop != &asked_) delete stop;
}

}  // namespace atl::detail
