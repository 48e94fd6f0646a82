// A scope: any number of children, awaited together.
//
//   atl::Scope scope;
//   for (const auto& part : parts) scope.fork([&] { scan(part); });
//   scope.join();
//
// Promises
//  - `join` returns when all children are done, and throws the first exception of a child. That
//    exception asks the other children to stop: their loops end, and their stop tokens report it.
//    `join` may be called again after more forks; a scope that was asked to stop stays so.
//  - A child runs on the joiner's stack or, if stolen, on its thief's. It takes one block of memory
//    from the worker's cache.
//  - The destructor waits for the children; an exception that no `join` threw is lost. While an
//    exception unwinds the stack, it asks them to stop first. It may run on any thread, as where a
//    coroutine ends elsewhere than it began.
//  - Only the code that made the scope may call `fork` and `join`, as a child of it must not: it
//    may open a scope of its own. In a child and all that is inside it, in a loop, an algorithm or
//    another scope's child of the maker's, in another task, and outside of tasks, both throw
//    RuntimeFault. A Fork of the maker's, which may run at the same time, is not noticed. Anyone
//    may call `request_stop`: the children's stop token then reports it.
#pragma once

#include <atomic>
#include <concepts>
#include <cstdint>
#include <new>
#include <stop_token>
#include <type_traits>
#include <utility>

#include "atoll/runtime/detail/result.hpp"
#include "atoll/runtime/detail/suspend.hpp"
#include "atoll/runtime/detail/task_context.hpp"
#include "atoll/runtime/detail/worker.hpp"

namespace atl {

class Scope {
 public:
  Scope() : context_(detail::worker_or_fault("Scope")->context) {}
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;
  ~Scope() {
    if (forked_ != done_here_) leave();
  }

  template <std::invocable F>
  void fork(F&& function) {
    using Child = ChildOf<std::decay_t<F>>;
    void* memory = makers_worker().job_memory.take_for<Child>();
    Child* child;
    try {
      child = ::new (memory) Child(*this, std::forward<F>(function));
    } catch (...) {
      detail::this_worker()->job_memory.give_for<Child>(memory);
      throw;
    }
    // Maybe another worker than before: a copy of the function may have suspended.
    detail::WorkerHead* worker = detail::this_worker();
    try {
      worker->deque.push(detail::word_of(static_cast<ChildBase*>(child),
                                         detail::WordKind::scope_child, worker->tag));
    } catch (...) {  // the deque cannot grow
      child->~Child();
      worker->job_memory.give_for<Child>(memory);
      throw;
    }
    ++forked_;
    detail::published(worker, worker->tag);
  }

  void join() {
    makers_worker();  // first: others may not even read the counts
    if (forked_ != done_here_) await();
    if (context_.failed()) [[unlikely]]
      context_.rethrow();
  }

  void request_stop() { context_.request_stop(); }

 private:
  struct ChildBase : detail::Job {
    // In `link`, which is free while it runs: it runs on top of the joiner, which therefore stands
    // still.
    static constexpr detail::Word kByJoiner = 1;
    Scope* scope;
  };

  template <class F>
  struct ChildOf : ChildBase {
    template <class G>
    ChildOf(Scope& owner, G&& given) : function(std::forward<G>(given)) {
      execute = [](detail::Job* job) { static_cast<ChildOf*>(job)->run(); };
      context = &owner.context_;
      link = 0;
      scope = &owner;
    }

    void run() {
      Scope* const owner = scope;
      try {
        function();
      } catch (...) {
        owner->context_.fail(std::current_exception());
      }
      const bool nested = link == kByJoiner;
      this->~ChildOf();
      // Maybe not the worker on which it began: the function may have suspended.
      detail::this_worker()->job_memory.give_for<ChildOf>(this);
      if (nested) {
        ++owner->done_here_;
      } else {
        owner->child_done();
      }
    }

    F function;
  };

  // The caller's. Throws RuntimeFault if that cannot be the maker.
  detail::WorkerHead& makers_worker() const {
    detail::WorkerHead* const worker = detail::this_worker();
    if (worker == nullptr || !context_.is_directly_in(worker->context)) [[unlikely]]
      check_maker(worker);
    return *worker;
  }
  ATOLL_EXPORT void check_maker(const detail::WorkerHead* worker) const;

  // Children that the joiner itself runs are counted without an atomic. Each of the others takes
  // one from `balance_`; the joiner adds their number when it begins to wait.
  ATOLL_EXPORT void await() noexcept;  // as Completion::wait_slow
  ATOLL_EXPORT void child_done();
  ATOLL_EXPORT void leave() noexcept;

  detail::SiblingContext context_;
  std::int64_t forked_ = 0;
  std::int64_t done_here_ = 0;  // and those elsewhere that were waited for
  std::atomic<std::int64_t> balance_{0};
  detail::Waiter waiter_ = detail::Waiter::none;
};

}  // namespace atl
