#include "atoll/runtime/scope.hpp"

#include "scheduler/worker.hpp"

namespace atl {

void Scope::check_maker(const detail::WorkerHead* worker) const {
  const detail::TaskContext* const here = worker == nullptr ? nullptr : worker->context;
  if (here != nullptr && context_.was_made_in(*here)) return;
  throw RuntimeFault(
      "fork or join of a Scope was called in one of its children, in a loop, in another task or "
      "outside of tasks: call it where the scope was made; a child or a loop's body may open a "
      "scope of its own");
}

using detail::Waiter;
using detail::Word;
using runtime::Worker;

// Runs the children that are still on top of this worker's deque, then waits for the others.
void Scope::await() noexcept {
  // A coroutine may leave its scope on a thread that is no worker.
  if (const Worker* const here = Worker::here(); here != nullptr) {
    detail::TaskContext* const own = here->context;
    while (forked_ != done_here_) {
      Worker* const worker = Worker::here();
      const Word word = worker->deque.pop();
      if (word == 0) break;
      auto* const child = detail::kind_of(word) == detail::WordKind::scope_child
                              ? static_cast<ChildBase*>(detail::pointer_of(word))
                              : nullptr;
      if (child == nullptr || child->scope != this) {
        detail::put_back(worker, word);
        break;
      }
      worker->counts.inline_forks.add();
      worker->context = &context_;
      child->link = ChildBase::kByJoiner;
      child->execute(child);
    }
    Worker::here()->context = own;
  }

  const std::int64_t elsewhere = forked_ - done_here_;
  if (elsewhere == 0) return;
  // Each child that is done has taken one from balance_. Acquire: what they wrote.
  if (balance_.load(std::memory_order_acquire) == -elsewhere) {
    balance_.store(0, std::memory_order_relaxed);
  } else {
    detail::suspend([this, elsewhere](Waiter handle) {
      // A copy: the closure is on the joiner's stack, which may continue once the sum is stored.
      const std::int64_t awaited = elsewhere;
      waiter_ = handle;
      // Release: the thread that brings it to 0 reads waiter_.
      return balance_.fetch_add(awaited, std::memory_order_acq_rel) != -awaited;
    });
  }
  done_here_ = forked_;
}

// The count reaches 0 only after the joiner has added what it waits for, and then it is suspended,
// so that only the last child may still touch the scope.
void Scope::child_done() {
  if (balance_.fetch_sub(1, std::memory_order_acq_rel) == 1) detail::resume(waiter_);
}

void Scope::leave() noexcept {
  if (std::uncaught_exceptions() != 0) request_stop();
  await();
}

}  // namespace atl
