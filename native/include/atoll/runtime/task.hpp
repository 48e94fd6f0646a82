// Tasks with a handle: spawn, join, stop, detach.
//
//   atl::Task<int> answer = atl::spawn([] { return 42; });
//   atl::Task<> near = atl::spawn(atl::on_chiplet(2), [&] { build(table); });
//   use(answer.join());
//
// Promises
//  - A task may suspend anywhere and continue on another worker. It has its own stop token and
//    task-locals (this_task.hpp).
//  - `join` returns the value or throws what the task threw. Any thread may call it and, unlike a
//    fork's, any task. On a worker it runs the task itself if the task has not begun and is on top
//    of the worker's deque.
//  - The destructor of a handle asks the task to stop and waits for it, as std::jthread does;
//    `detach` lets it run on alone. The runtime's destructor waits for all of them.
//  - A spawn costs one block of memory from the worker's cache, no reference count, no lock.
#pragma once

#include <atomic>
#include <concepts>
#include <coroutine>
#include <new>
#include <stop_token>
#include <type_traits>
#include <utility>

#include "atoll/runtime/detail/coro_part.hpp"
#include "atoll/runtime/detail/result.hpp"
#include "atoll/runtime/detail/suspend.hpp"
#include "atoll/runtime/detail/task_context.hpp"
#include "atoll/runtime/detail/worker.hpp"
#include "atoll/runtime/place.hpp"

namespace atl {

class Runtime;

template <class Value>
class Coro;

namespace detail {

template <class F>
inline constexpr bool kIsCoro = false;
template <class Value>
inline constexpr bool kIsCoro<Coro<Value>> = true;

// Whether the caller is this task, or a fork, a scope's child or a loop's piece of it.
template <class State>
bool is_part_of(const State& task) {
  const WorkerHead* const worker = this_worker();
  return worker != nullptr && worker->context != nullptr && worker->context->is_part_of(task.own);
}

// What spawn and run take: a function, or a coroutine of type Coro (coro.hpp), which they move.
template <class F>
concept Startable = std::invocable<F> || kIsCoro<F>;

// The part of a task that its handle needs.
template <class Value>
struct TaskState : Job {
  TaskContext own;
  Completion completion;
  Result<Value> result;
  // Destroys the task and gives its memory back. After completion only: then `execute` does this.
  void drop() { this->execute(this); }
};

// Resumes a coroutine when the task that it awaits has ended: a Coro where its own task may run,
// another one on the worker that ended the awaited task. It is not a part of the coroutine's frame,
// which may be destroyed before.
template <class Value>
class Resumption : public Job {
 public:
  static Resumption* make(TaskState<Value>* task) {
    return ::new (take_job_memory_for<Resumption>()) Resumption(task);
  }
  // Returns false, and does nothing, if the task is done.
  template <class Promise>
  bool await(std::coroutine_handle<Promise> waiting) {
    waiting_ = waiting;
    context = context_of(waiting);
    link = home_of(waiting);
    execute = [](Job* job) { static_cast<Resumption*>(job)->template run<Promise>(); };
    return task_->completion.leave(waiter_of(this));
  }
  void drop() {
    this->~Resumption();
    give_job_memory_for<Resumption>(this);
  }

  // The coroutine has gone on, or is destroyed and still awaits. True: then the task has not ended;
  // it is asked to stop, and its end drops it.
  bool forget() {
    // First, since a task that stops at once must not resume the coroutine.
    if (task_->completion.take_back(waiter_of(this))) {
      task_->own.request_stop();
      if (task_->completion.abandon()) task_->drop();
      drop();
      return true;
    }
    // It has ended, and a worker runs this job, or has.
    if (second()) drop();
    return false;
  }

 private:
  explicit Resumption(TaskState<Value>* task) : task_(task) {}

  template <class Promise>
  void run() {
    if (second()) return drop();
    resume_from_job<Promise>(waiting_);  // after which `this` may be gone
  }
  // Of `run` and `forget` the second drops this. Acquire and release: what the first did with it.
  bool second() { return met_.exchange(true, std::memory_order_acq_rel); }

  TaskState<Value>* task_;
  std::coroutine_handle<> waiting_;
  std::atomic<bool> met_{false};
};

template <class Value, class F>
struct TaskOf : TaskState<Value> {
  template <class G>
  explicit TaskOf(G&& given) : function(std::forward<G>(given)) {
    this->context = &this->own;
    this->execute = [](Job* job) { static_cast<TaskOf*>(job)->run(); };
  }

  void run() {
    this->result.fill(function);
    this->execute = &destroy;
    if (this->completion.complete()) destroy(this);
    // The last of all, because destructors of a detached task may still wait, on a stack of a
    // runtime that waits for this count only. `this` may be gone.
    task_ended();
  }

  static void destroy(Job* job) {
    auto* const self = static_cast<TaskOf*>(job);
    self->~TaskOf();
    give_job_memory_for<TaskOf>(self);
  }

  F function;
};

template <class F>
using TaskFor = TaskOf<std::invoke_result_t<std::decay_t<F>&>, std::decay_t<F>>;

template <class F>
TaskFor<F>* make_task(F&& function) {
  using Made = TaskFor<F>;
  void* memory = take_job_memory_for<Made>();
  try {
    return ::new (memory) Made(std::forward<F>(function));
  } catch (...) {
    give_job_memory_for<Made>(memory);
    throw;
  }
}

template <class Value>
struct CoroPromise;
template <class Value>
CoroPromise<Value>* make_task(Coro<Value>&& coro);

}  // namespace detail

template <class Value = void>
class [[nodiscard]] Task {
 public:
  Task() = default;
  Task(Task&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
  Task& operator=(Task&& other) noexcept {
    if (this != &other) {
      release();
      state_ = std::exchange(other.state_, nullptr);
    }
    return *this;
  }
  ~Task() { release(); }

  bool joinable() const { return state_ != nullptr; }
  bool done() const { return state_ != nullptr && state_->completion.done(); }
  // Asks the task to stop; the task has to check its stop token.
  void request_stop() {
    if (state_ != nullptr) state_->own.request_stop();
  }

  // Call it once. Throws RuntimeFault if there is nothing to join, or if the task would wait for
  // itself: then it still has its handle.
  Value join() {
    check_not_own();
    Owner owner{take_state("join")};
    detail::await_task(owner.state, owner.state->completion);
    return owner.state->result.take();
  }

  void detach() {
    if (state_ == nullptr) return;
    auto* state = std::exchange(state_, nullptr);
    if (state->completion.abandon()) state->drop();
  }

  // For when_any. Throws RuntimeFault, naming `call`, if there is no task.
  detail::Completion& completion(const char* call) {
    if (state_ == nullptr) detail::fault_no_task(call);
    return state_->completion;
  }

  // Returns the task, which is no longer this handle's: for the C interface, which makes a Task of
  // it again to join or detach it.
  detail::TaskState<Value>* give_up() { return std::exchange(state_, nullptr); }

  // A Coro that awaits the task goes on where it may run. A coroutine of another type is resumed by
  // a worker of the task's runtime; from then on it may call all that a task may call except what
  // suspends (coroutine.hpp). One that is destroyed while it awaits asks the task to stop and
  // leaves it to itself.
  auto operator co_await() && {
    // Made while this handle still owns the task, because it may throw.
    auto* const resumption =
        state_ == nullptr || done() ? nullptr : detail::Resumption<Value>::make(state_);
    return Awaiter(take_state("co_await"), resumption);
  }
  void operator co_await() & = delete;  // it takes the value: co_await std::move(task)

  // Takes over a task that is made but not ready yet; for Runtime and spawn.
  explicit Task(detail::TaskState<Value>* state) : state_(state) {}

 private:
  struct Owner {
    detail::TaskState<Value>* state;
    explicit Owner(detail::TaskState<Value>* given) : state(given) {}
    Owner(Owner&& other) noexcept : state(std::exchange(other.state, nullptr)) {}
    ~Owner() {
      if (state != nullptr) state->drop();
    }
  };

  struct Awaiter : detail::KeepsContext {
    Owner owner;
    detail::Resumption<Value>* resumption;  // null if the task was done
    bool awaits = false;

    Awaiter(detail::TaskState<Value>* state, detail::Resumption<Value>* made)
        : owner{state}, resumption(made) {}
    Awaiter(Awaiter&&) = delete;
    ~Awaiter() {
      if (resumption == nullptr) return;
      if (!awaits) {
        resumption->drop();
      } else if (resumption->forget()) {
        owner.state = nullptr;
      }
    }
    bool await_ready() const { return resumption == nullptr; }
    template <class Promise>
    bool await_suspend(std::coroutine_handle<Promise> handle) {
      awaits = true;  // before another thread resumes the coroutine
      return resumption->await(handle) || (awaits = false);
    }
    Value await_resume() { return owner.state->result.take(); }
  };

  detail::TaskState<Value>* take_state(const char* call) {
    if (state_ == nullptr) detail::fault_no_task(call);
    return std::exchange(state_, nullptr);
  }

  void check_not_own() {
    if (state_ != nullptr && !done() && detail::is_part_of(*state_)) detail::fault_joins_itself();
  }

  // A task that destroys its own handle ends the program.
  void release() noexcept {
    if (state_ == nullptr) return;
    check_not_own();
    if (!done()) request_stop();
    Owner owner{std::exchange(state_, nullptr)};
    detail::await_task(owner.state, owner.state->completion);
  }

  detail::TaskState<Value>* state_ = nullptr;
};

namespace detail {

// Returns the handle of a task that `start` makes ready. If that throws, it drops the task.
template <class Made, class Start>
auto started(Made* made, Start&& start) {
  try {
    start(made);
  } catch (...) {
    Made::destroy(made);
    throw;
  }
  return [made]<class Value>(TaskState<Value>*) { return Task<Value>(made); }(made);
}

}  // namespace detail

// Starts a task in the caller's runtime, in the caller's group or at `place`. Throws RuntimeFault
// outside of a task, or if the runtime has no such place.
template <detail::Startable F>
[[nodiscard]] auto spawn(F&& function) {
  detail::worker_or_fault("spawn");
  return detail::started(detail::make_task(std::forward<F>(function)), [](detail::Job* job) {
    // Maybe another worker than before: a copy of the function may have suspended.
    detail::WorkerHead* worker = detail::this_worker();
    const detail::Word tag = worker->tag;
    detail::count_and_publish(
        worker, tag, [&] { worker->deque.push(detail::word_of(job, detail::WordKind::job, tag)); });
    detail::published(worker, tag);
  });
}

template <detail::Startable F>
[[nodiscard]] auto spawn(Place place, F&& function) {
  // First, so that it throws before anything is made.
  const detail::Word tag = detail::tag_for(detail::worker_or_fault("spawn"), place);
  return detail::started(detail::make_task(std::forward<F>(function)),
                         [tag, place](detail::Job* job) {
                           detail::start_placed(detail::this_worker(), job, tag, place.urgent);
                         });
}

// Calls the function at the place and waits: the `call` of ARCAS (section 4.6). Throws RuntimeFault
// as `spawn` does, and the function's exception.
template <detail::Startable F>
decltype(auto) call(Place place, F&& function) {
  detail::worker_or_fault("call");
  return spawn(place, std::forward<F>(function)).join();
}

}  // namespace atl
