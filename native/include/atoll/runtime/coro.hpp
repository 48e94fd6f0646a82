// A coroutine type: a task without a stack of its own, for very many that wait for others.
//
//   atl::Coro<Rows> query(int part) {
//     const Rows left = co_await atl::spawn([part] { return scan(part); });   // a task
//     co_return join(left, co_await lookup(part));                            // another Coro
//   }
//   const Rows rows = runtime.run(query(7));       // or spawn(query(7)): a Task<Rows>
//
// A Coro is lazy: it begins when it is awaited or spawned, and then runs like a part of the
// awaiting coroutine, on the same worker (symmetric transfer: Baker, "Understanding symmetric
// transfer", 2020). While it awaits it keeps only its frame, in place of a stack of at least 4 KiB,
// and needs no other memory as a task. With g++ 12 a Coro<> has 88 bytes, its parameters, its local
// variables and what it awaits (an event 16, a task 32), rounded up to 16 (with clang, to 64); and
// 64 bytes more while it awaits a task.
//
// Promises
//  - `spawn`, `run` and `call` of Runtime, Group and tasks take a Coro as they take a function; it
//    is then a task with its own stop token and task-locals, which the coroutines that it awaits
//    share. The Runtime's destructor waits for it.
//  - Between two awaits it may do all that a task may: fork, wait, spawn. After it has awaited a
//    task or an event it goes on in its own runtime, at its place or in its group.
//  - An exception that leaves a Coro comes out of the `co_await`, or of the Task's `join`.
//  - A Coro that has not begun may be destroyed. One that has begun is destroyed when its await is
//    over or, of a task, when the handle is joined or dropped: until then its parameters live.
//  - A coroutine of another type may await it. Once it has suspended for a task or an event, it is
//    then in no task: it has no stop token and no task-locals.
//  - Its value and its local variables are aligned to at most 64 bytes.
//  - It may await anything else that can be awaited, and then goes on, and may end, on the thread
//    that resumes it, until its next await of a task or an event. co_await schedule(runtime)
//    (coroutine.hpp) brings it back, too. A task that resumes it keeps its own context.
#pragma once

#include <coroutine>
#include <cstddef>
#include <exception>
#include <type_traits>
#include <utility>

#include "atoll/runtime/event.hpp"
#include "atoll/runtime/task.hpp"

namespace atl {

template <class Value>
class Coro;

namespace detail {

// The size of a frame must be a multiple of its alignment (job_memory.hpp). So it is with gcc, for
// which a frame is a class; clang 16 gives the end of the last variable.
struct CoroFrame {
#if defined(__clang__)
  static constexpr std::size_t kMultiple = JobMemory::kLine;
#else
  static constexpr std::size_t kMultiple = 1;
#endif
  static std::size_t whole(std::size_t bytes) {
    return (bytes + kMultiple - 1) / kMultiple * kMultiple;
  }
  static void* operator new(std::size_t bytes) { return take_job_memory(whole(bytes)); }
  static void operator delete(void* memory, std::size_t bytes) {
    give_job_memory(memory, whole(bytes));
  }
};

// What a promise does with the result, kept in Base::result.
template <class Value, class Base>
struct Returning : Base, CoroFrame {
  static_assert(alignof(Base) <= JobMemory::kLine, "a frame is aligned to 64 bytes at most");

  template <class Given>
  void return_value(Given&& value) {
    auto give = [&value]() -> Value { return std::forward<Given>(value); };
    this->result.fill(give);
  }
  void unhandled_exception() noexcept { this->result.fail(std::current_exception()); }
};
template <class Base>
struct Returning<void, Base> : Base, CoroFrame {
  void return_void() {}
  void unhandled_exception() noexcept { this->result.fail(std::current_exception()); }
};

template <class Awaitable>
decltype(auto) awaiter_of(Awaitable&& awaitable) {
  if constexpr (requires { std::forward<Awaitable>(awaitable).operator co_await(); }) {
    return std::forward<Awaitable>(awaitable).operator co_await();
  } else if constexpr (requires { operator co_await(std::forward<Awaitable>(awaitable)); }) {
    return operator co_await(std::forward<Awaitable>(awaitable));
  } else {
    return std::forward<Awaitable>(awaitable);
  }
}

// Resumes a Coro in the context of its task, in the place of whoever resumes this: perhaps another
// task, which then goes on in its own context.
struct InContext {
  struct promise_type : CoroFrame {
    InContext get_return_object() {
      return {std::coroutine_handle<promise_type>::from_promise(*this)};
    }
    std::suspend_always initial_suspend() const noexcept { return {}; }
    std::suspend_never final_suspend() const noexcept { return {}; }
    void return_void() const {}
    void unhandled_exception() const { throw; }  // of a coroutine that awaits the Coro
  };
  std::coroutine_handle<> handle;
};

inline InContext in_context(std::coroutine_handle<> coro, TaskContext* context) {
  struct Exchange {
    TaskContext* own = nullptr;
    explicit Exchange(TaskContext* given) {
      if (WorkerHead* const worker = this_worker()) own = std::exchange(worker->context, given);
    }
    ~Exchange() {  // perhaps on another worker, with the stack of whoever resumed this
      if (WorkerHead* const worker = this_worker()) worker->context = own;
    }
  };
  const Exchange exchange(context);
  coro.resume();
  co_return;
}

// Awaits something that knows nothing of tasks. Costs a frame of its own.
template <class Awaiter>
struct AwaitedInContext {
  Awaiter awaiter;

  bool await_ready() { return awaiter.await_ready(); }
  template <class Promise>
  auto await_suspend(std::coroutine_handle<Promise> handle) {
    // Once it is handed on, this may be gone with the Coro's frame.
    const std::coroutine_handle<> in = in_context(handle, context_of(handle)).handle;
    try {
      if constexpr (std::is_same_v<decltype(awaiter.await_suspend(in)), bool>) {
        const bool suspends = awaiter.await_suspend(in);
        if (!suspends) in.destroy();
        return suspends;
      } else {
        return awaiter.await_suspend(in);
      }
    } catch (...) {
      in.destroy();
      throw;
    }
  }
  decltype(auto) await_resume() { return awaiter.await_resume(); }
};

// A Coro that is spawned is a task, whose state is in its own frame; one that another coroutine
// awaits is a part of that one's task, or of none.
template <class Value>
struct CoroPromise : Returning<Value, TaskState<Value>> {
  using Handle = std::coroutine_handle<CoroPromise>;

  struct End {
    bool await_ready() const noexcept { return false; }
    std::coroutine_handle<> await_suspend(Handle handle) const noexcept {
      CoroPromise& self = handle.promise();
      if (self.context != &self.own) {
        return std::coroutine_handle<>::from_address(self.completion.expected());
      }
      // `self` and `this` may be gone with the frame, as soon as the task is complete.
      const Word home = self.link;
      self.execute = &destroy;
      if (self.completion.complete()) destroy(&self);
      count_ended_from_anywhere(home);
      return std::noop_coroutine();
    }
    void await_resume() const noexcept {}
  };

  CoroPromise() { this->execute = &go_on; }

  // Begins it as a task, or resumes it: where its task may run, or in no task anywhere.
  static void go_on(Job* job) {
    auto& self = *static_cast<CoroPromise*>(job);
    WorkerHead* const worker = self.context == nullptr ? nullptr : this_worker();
    self.link = worker == nullptr ? 0 : word_of(worker, WordKind::job, worker->tag);
    resume_from_job<CoroPromise>(Handle::from_promise(self));
  }
  static void destroy(Job* job) { Handle::from_promise(*static_cast<CoroPromise*>(job)).destroy(); }

  Coro<Value> get_return_object();
  std::suspend_always initial_suspend() const noexcept { return {}; }
  End final_suspend() const noexcept { return {}; }

  Event::CoroAwaiter await_transform(Event& event) { return Event::CoroAwaiter(event); }
  template <class Other>
  Coro<Other>&& await_transform(Coro<Other>&& coro) {
    return std::move(coro);
  }
  template <class Awaitable>
  auto await_transform(Awaitable&& awaitable) {
    using Awaiter = decltype(awaiter_of(std::forward<Awaitable>(awaitable)));
    if constexpr (std::is_base_of_v<KeepsContext, std::remove_cvref_t<Awaiter>>) {
      return awaiter_of(std::forward<Awaitable>(awaitable));
    } else {
      return AwaitedInContext<Awaiter>{awaiter_of(std::forward<Awaitable>(awaitable))};
    }
  }
};

}  // namespace detail

template <class Value = void>
class [[nodiscard]] Coro {
 public:
  using promise_type = detail::CoroPromise<Value>;

  Coro(Coro&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Coro& operator=(Coro&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Coro() {
    if (handle_) handle_.destroy();
  }

  // Begins it; its value or exception is that of the await. Throws RuntimeFault if it was moved
  // from or awaited before.
  auto operator co_await() && {
    if (!handle_) detail::fault_no_task("co_await");
    return Awaiter{std::move(*this)};
  }

 private:
  friend promise_type;
  friend promise_type* detail::make_task<Value>(Coro&& coro);
  struct Awaiter {
    Coro coro;  // destroyed at the end of the await
    bool await_ready() const { return false; }
    template <class Promise>
    std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> waiting) {
      promise_type& promise = coro.handle_.promise();
      promise.completion.expect(waiting.address());
      promise.link = detail::home_of(waiting);
      promise.context = detail::context_of(waiting);
      // If it is awaited in a part of the task (Stoppable), it is in that, which outlives it.
      const detail::WorkerHead* const worker = detail::this_worker();
      if (promise.context != nullptr && worker != nullptr) promise.context = worker->context;
      return coro.handle_;
    }
    Value await_resume() { return coro.handle_.promise().result.take(); }
  };
  explicit Coro(std::coroutine_handle<promise_type> handle) : handle_(handle) {}

  std::coroutine_handle<promise_type> handle_;
};

namespace detail {

template <class Value>
Coro<Value> CoroPromise<Value>::get_return_object() {
  return Coro<Value>(Handle::from_promise(*this));
}

template <class Value>
CoroPromise<Value>* make_task(Coro<Value>&& coro) {
  if (!coro.handle_) fault_no_task("spawn");
  CoroPromise<Value>& task = std::exchange(coro.handle_, nullptr).promise();
  task.context = &task.own;
  return &task;
}

}  // namespace detail

}  // namespace atl
