// Suspends and resumes tasks and threads that are not workers.
#include "atoll/runtime/detail/suspend.hpp"

#include <utility>

#include "suspension.hpp"

namespace atl {

namespace {

enum class Kind : std::uintptr_t { fiber = 0, thread = 1, job = 2, call = 3 };
constexpr std::uintptr_t kKind = 3;

detail::Waiter waiter_of_kind(const void* pointer, Kind kind) {
  return detail::Waiter{reinterpret_cast<std::uintptr_t>(pointer) |
                        static_cast<std::uintptr_t>(kind)};
}

// A waiting thread's, on its stack.
using WaitingThread = runtime::WakeNode;
constexpr std::uint32_t kResumed = 1;

detail::Word word_of_fiber(const runtime::Fiber& fiber) {
  return detail::word_of(&fiber, detail::WordKind::fiber, runtime::Worker::note_of(fiber).tag);
}

}  // namespace

namespace runtime {

void suspend_thread(bool (*publish)(void*, detail::Waiter), void* closure) {
  WaitingThread self;
  if (!publish(closure, waiter_of_kind(&self, Kind::thread))) return;
  while (self.word.load(std::memory_order_acquire) != kResumed) futex_wait(self.word, 0);
  self.wake_others();
}

void unsuspend(Fiber& fiber) { Worker::here()->make_ready(word_of_fiber(fiber)); }

void Resumptions::add(detail::Waiter waiter) noexcept {
  const auto bits = static_cast<std::uintptr_t>(waiter);
  void* const pointer = reinterpret_cast<void*>(bits & ~kKind);
  if (held_ == Parking::Wave::kMostHeld) let_run();
  ++held_;
  switch (static_cast<Kind>(bits & kKind)) {
    case Kind::fiber: {
      const Fiber& fiber = *static_cast<Fiber*>(pointer);
      return make_ready(Worker::note_of(fiber).worker->team, word_of_fiber(fiber));
    }
    case Kind::thread: return threads_.add(*static_cast<WaitingThread*>(pointer));
    case Kind::job: {
      const auto* const job = static_cast<detail::Job*>(pointer);
      const Word home = job->link;
      const detail::WorkerHead* const worker =
          home != 0 ? static_cast<detail::WorkerHead*>(detail::pointer_of(home)) : Worker::here();
      if (worker != nullptr) {
        return make_ready(static_cast<const Worker*>(worker)->team,
                          detail::word_of(job, detail::WordKind::job, detail::tag_of(home)));
      }
      [[fallthrough]];
    }
    case Kind::call: {
      auto* const job = static_cast<detail::Job*>(pointer);
      job->link = std::exchange(calls_, reinterpret_cast<std::uintptr_t>(job));
    }
  }
}

Resumptions::~Resumptions() {
  let_run();
  visit_.reset();  // a call may be a user's code, which may end the team
  while (calls_ != 0) {
    auto* const job = reinterpret_cast<detail::Job*>(calls_);
    calls_ = std::exchange(job->link, 0);
    job->execute(job);
  }
}

void Resumptions::make_ready(Team& team, Word word) noexcept {
  if (!visit_ || &visit_->team != &team) visit_.emplace(team);
  visit_->make_ready(word);
}

void Resumptions::let_run() noexcept {
  if (visit_) visit_->let_run();
  if (!threads_.empty()) threads_.let_run(kResumed);
  held_ = 0;
}

}  // namespace runtime

namespace detail {

using runtime::Fiber;
using runtime::Team;
using runtime::Worker;

Waiter waiter_of(Job* job) { return waiter_of_kind(job, Kind::job); }
Waiter call_of(Job* job) { return waiter_of_kind(job, Kind::call); }

ATL_RT_RETURNS_BY_JUMP [[gnu::noinline]] void suspend(bool (*publish)(void* closure, Waiter handle),
                                                      void* closure) {
  runtime::suspend_inline([&](Waiter handle) { return publish(closure, handle); });
}

// Most often for a task that may go on right here.
void resume(Waiter handle) {
  const auto bits = static_cast<std::uintptr_t>(handle);
  Worker* const worker = Worker::here();
  if (worker != nullptr && static_cast<Kind>(bits & kKind) == Kind::fiber) [[likely]] {
    const Fiber& fiber = *reinterpret_cast<Fiber*>(bits);
    if (&Worker::note_of(fiber).worker->team == &worker->team) {
      return worker->make_ready(word_of_fiber(fiber));
    }
  }
  runtime::Resumptions().add(handle);
}

ATL_RT_RETURNS_BY_JUMP void Completion::wait_slow() noexcept {
  runtime::suspend_inline([this](Waiter handle) { return leave(handle); });
}

}  // namespace detail
}  // namespace atl
