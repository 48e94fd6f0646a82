#include "atoll/runtime/when.hpp"

#include <atomic>
#include <memory>

#include "atoll/runtime/event.hpp"
#include "atoll/runtime/places.hpp"

namespace atl::detail {

namespace {

struct Any;

// Called in place when its task ends.
struct Entry : Job {
  Any* any;
  std::size_t index;
};

// One call of wait_for_any. It lasts until the caller and all tasks that ended meanwhile are done
// with it.
struct Any {
  explicit Any(std::size_t tasks) : entries(tasks) {}

  void won(std::size_t index) {
    std::size_t none = entries.size();
    if (first.compare_exchange_strong(none, index, std::memory_order_acq_rel)) done.set();
  }
  void leave(std::size_t users_gone = 1) {
    if (users.fetch_sub(users_gone, std::memory_order_acq_rel) == users_gone) delete this;
  }

  std::vector<Entry> entries;
  std::atomic<std::size_t> first{entries.size()};
  std::atomic<std::size_t> users{1};
  Event done;
};

void task_ended_first(Job* job) {
  const auto& entry = *static_cast<Entry*>(job);
  entry.any->won(entry.index);
  entry.any->leave();
}

}  // namespace

std::optional<std::size_t> wait_for_any(std::span<Completion* const> tasks, Deadline deadline,
                                        const std::stop_token& stop) {
  if (tasks.empty()) throw RuntimeFault("when_any of no tasks: it would wait for ever");
  for (std::size_t at = 0; at < tasks.size(); ++at) {
    if (tasks[at]->done()) return at;
  }

  // Takes its waiters back at the end, also if this throws.
  struct Wait {
    std::span<Completion* const> tasks;
    Any* any;
    std::size_t left = 0;  // waiters
    ~Wait() {
      std::size_t users_gone = 1;
      for (std::size_t at = 0; at < left; ++at) {
        if (tasks[at]->take_back(call_of(&any->entries[at]))) ++users_gone;
      }
      any->leave(users_gone);
    }
  };
  Wait wait{tasks, new Any(tasks.size())};
  Any& any = *wait.any;
  for (; wait.left < tasks.size(); ++wait.left) {
    Entry& entry = any.entries[wait.left];
    entry.execute = task_ended_first;
    entry.context = nullptr;
    entry.any = &any;
    entry.index = wait.left;
    any.users.fetch_add(1, std::memory_order_relaxed);
    Completion& task = *tasks[wait.left];
    if (task.leave(call_of(&entry))) continue;
    any.leave();
    if (!task.done()) throw RuntimeFault("when_any: somebody waits for one of the tasks already");
    any.won(wait.left);
    break;
  }
  any.done.wait_until(deadline, stop);
  const std::size_t first = any.first.load(std::memory_order_acquire);
  if (first == tasks.size()) return std::nullopt;
  return first;
}

}  // namespace atl::detail
