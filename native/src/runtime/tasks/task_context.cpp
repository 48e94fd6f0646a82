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

std::stop_source TaskContext::stop_source() {
  Stop* stop = stop_.load(std::memory_order_acquire);
  if (stop != nullptr) return stop->source;
  auto made = std::make_unique<Stop>();
  if (upstream_ != nullptr)
    made->upstream.emplace(upstream_->stop_token(), Stop::Forward{&made->source});
  // Of several threads that make one, the first wins.
  if (stop_.compare_exchange_strong(stop, made.get(), std::memory_order_acq_rel,
                                    std::memory_order_acquire)) {
    stop = made.release();
  }
  return stop->source;
}

void* TaskContext::local(const void* key, void* (*make)(void*), void* maker, void (*drop)(void*)) {
  if (upstream_ != nullptr) return upstream_->local(key, make, maker, drop);
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
  while (Local* const local = locals_.load(std::memory_order_acquire)) {
    locals_.store(local->older, std::memory_order_release);
    local->drop(local->value);
    delete local;
  }
  delete stop_.load(std::memory_order_acquire);
}

}  // namespace atl::detail
