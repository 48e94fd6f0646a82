#include "atoll/runtime/event.hpp"

#include "suspension.hpp"
#include "wait_on.hpp"

namespace atl {

namespace {

template <class Waiting>
void resume_list(std::uintptr_t waiters, runtime::Resumptions& resumed) {
  while (waiters != 0) {
    const Waiting taken = *reinterpret_cast<const Waiting*>(waiters);  // [set-next]
    resumed.add(taken.waiter);
    waiters = taken.next;
  }
}

}  // namespace

// `self` is on the waiter's frame, which may be gone once it is resumed.
bool Event::join(Waiting& self) {
  // Acquire: what was written before `set`.
  std::uintptr_t state = state_.load(std::memory_order_acquire);
  do {
    if ((state & kSet) != 0) return false;
    self.next = state & ~kTable;
    // Release: `self`, to the thread that sets.
  } while (!state_.compare_exchange_weak(
      state, reinterpret_cast<std::uintptr_t>(&self) | (state & kTable), std::memory_order_release,
      std::memory_order_acquire));  // [wait-join]
  return true;
}

ATL_RT_RETURNS_BY_JUMP void Event::wait_slow() {
  Waiting self{};
  runtime::suspend_inline([this, &self](detail::Waiter handle) {
    self.waiter = handle;
    return join(self);
  });
}

void Event::wake(std::uintptr_t waiters) {
  // Most often there is one.
  const Waiting first = *reinterpret_cast<const Waiting*>(waiters);
  if (first.next == 0) return detail::resume(first.waiter);
  runtime::Resumptions resumed;
  resume_list<Waiting>(waiters, resumed);
}

// kTable changes only with the lock of the table's queue. So a wait is in the queue from the moment
// when its bit is seen, and of those that `set` takes there none began after a later `reset`.
bool Event::wait_in_table(detail::Deadline deadline, const std::stop_token* stop) {
  const auto joins = [](void* event) {
    std::atomic<std::uintptr_t>& word = static_cast<Event*>(event)->state_;
    std::uintptr_t state = word.load(std::memory_order_acquire);
    do {
      if ((state & kSet) != 0) return false;
    } while (!word.compare_exchange_weak(state, state | kTable, std::memory_order_acquire));
    return true;  // [table-join]
  };
  const runtime::WaitEnd end =
      runtime::wait_while(&state_, joins, this, {.deadline = deadline, .stop = stop});
  return end == runtime::WaitEnd::changed || end == runtime::WaitEnd::woken || is_set();
}

void Event::set_and_wake_table() {
  runtime::WaitQueue queue(&state_);
  // The last access to the event: a waiter may see it, return, and destroy it.
  const std::uintptr_t before = state_.exchange(kSet, std::memory_order_acq_rel);  // [table-take]
  runtime::Waiting* const waiters = queue.take_all();
  queue.unlock();
  runtime::Resumptions resumed;
  resume_list<Waiting>(before & ~(kSet | kTable), resumed);
  runtime::resume_all(waiters, resumed);
}

}  // namespace atl
