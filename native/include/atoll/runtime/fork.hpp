// fork and join: the cheapest way to offer work to the other workers.
//
//   auto left = atl::fork([&] { return fib(n - 1); });
//   const long right = fib(n - 2);
//   return left.join() + right;
//
// `fork` puts the callable into an object on the caller's frame and its address into the worker's
// deque: no allocation, no reference count. If nobody stole it, `join` takes it back and calls it
// like any function; the compiler can inline the call. If it was stolen and is not done yet, the
// task suspends, and its worker does other work. (Child stealing, as in Cilk-5's and TBB's
// descendants; the frame as task memory after Wool: Faxen, "Wool: a work stealing library", 2008.)
//
// Promises
//  - Join in the reverse order of the forks; any other order works, but more slowly.
//  - `join` throws the child's exception. The destructor of a Fork that was not joined joins it;
//    its exception is then lost. But while an exception unwinds the stack, the destructor drops a
//    child that has not begun.
//  - The child is part of its parent's task and shares its stop token and task-locals.
//  - The Fork must stay on the stack of its task; it cannot be moved. Only the task that made it
//    may join or destroy it; the call of another task is not noticed.
#pragma once

#include <concepts>
#include <exception>
#include <optional>
#include <type_traits>
#include <utility>

#include "atoll/runtime/detail/result.hpp"
#include "atoll/runtime/detail/suspend.hpp"
#include "atoll/runtime/detail/worker.hpp"

namespace atl {

template <std::invocable F>
class [[nodiscard]] Fork : detail::Job {
 public:
  using Value = std::invoke_result_t<F&>;

  explicit Fork(F&& function) : function_(std::forward<F>(function)) { push(); }
  explicit Fork(const F& function) : function_(function) { push(); }
  Fork(const Fork&) = delete;
  Fork& operator=(const Fork&) = delete;

  ~Fork() {
    if (!joined_) abandon();
  }

  // Returns the child's value or throws what it threw. Call it once: a second call throws
  // RuntimeFault.
  Value join() {
    detail::WorkerHead* worker = detail::this_worker();
    const detail::Word mine = detail::word_of(job(), detail::WordKind::job, worker->tag);
    if (worker->deque.pop_from(at_, mine)) [[likely]] {
      joined_ = true;
      worker->counts.inline_forks.add();
      return function_();
    }
    return join_elsewhere(worker, mine);
  }

 private:
  detail::Job* job() { return this; }

  void push() {
    detail::WorkerHead* worker = detail::worker_or_fault("fork");
    execute = [](detail::Job* job) { static_cast<Fork*>(job)->run_stolen(); };
    context = worker->context;
    at_ = worker->deque.push(detail::word_of(job(), detail::WordKind::job, worker->tag));
    detail::published(worker, worker->tag);
  }

  void run_stolen() {
    result_.fill(function_);
    completion_.complete();
  }

  // The child was stolen, or is not where it was pushed.
  [[gnu::noinline, gnu::cold]] Value join_elsewhere(detail::WorkerHead* worker, detail::Word mine) {
    const detail::Word popped = worker->deque.pop();
    if (popped == mine) {
      joined_ = true;
      worker->counts.inline_forks.add();
      return function_();
    }
    join_stolen(worker, popped);
    return result_.take();
  }

  [[gnu::noinline, gnu::cold]] void join_stolen(detail::WorkerHead* worker, detail::Word popped) {
    if (popped != 0) detail::put_back(worker, popped);
    if (std::exchange(joined_, true)) detail::fault_joined_twice();
    completion_.wait();
  }

  [[gnu::noinline, gnu::cold]] void abandon() {
    detail::WorkerHead* worker = detail::this_worker();
    const detail::Word popped = worker->deque.pop();
    if (popped != detail::word_of(job(), detail::WordKind::job, worker->tag)) {
      return join_stolen(worker, popped);
    }
    if (std::uncaught_exceptions() == 0) result_.fill(function_);
  }

  F function_;
  detail::Deque::Index at_;
  bool joined_ = false;
  detail::Completion completion_;
  detail::Result<Value> result_;
};

template <class F>
[[nodiscard]] Fork<std::decay_t<F>> fork(F&& function) {
  return Fork<std::decay_t<F>>(std::forward<F>(function));
}

}  // namespace atl
