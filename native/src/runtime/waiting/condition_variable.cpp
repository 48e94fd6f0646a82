#include "atoll/runtime/condition_variable.hpp"

#include "wait_on.hpp"

namespace atl {

namespace {

struct Relock {
  ConditionVariable::Lock& lock;
  ~Relock() { lock.lock(); }
};

}  // namespace

bool ConditionVariable::wait_slow(Lock& lock, detail::Deadline deadline,
                                  const std::stop_token* stop) {
  // Before the lock is released: a notification after that changes the word.
  const std::uint32_t seen = state_.fetch_or(kWaited, std::memory_order_acq_rel) | kWaited;
  lock.unlock();
  const Relock relock{lock};
  const runtime::WaitEnd end = runtime::wait_on(state_, seen, {.deadline = deadline, .stop = stop});
  return end != runtime::WaitEnd::stopped && end != runtime::WaitEnd::late;
}

// Uses only the address of *this: it may be gone. That notify_one leaves kWaited costs the next
// notification a check of the queue.
void ConditionVariable::wake_one() { runtime::wake_one(&state_); }
void ConditionVariable::wake_all() { runtime::wake_all(&state_); }

}  // namespace atl
