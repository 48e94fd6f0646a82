// Suspends and resumes tasks and threads that are not workers.
#include "atoll/runtime/detail/suspend.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "suspension.hpp"

namespace atl {

namespace {

enum class Kind : std::uintptr_t { fiber = 0, thread = 1, job = 2, call = 3 };
constexpr std::uintptr_t kKind = 3;

detail::Waiter waiter_of_kind(const void* pointer, Kind kind) {
  return detail::Waiter{reinterpret_cast<std::uintptr_t>(pointer) |
                        static_cast<std::uintptr_t>(kind)};
}

// A waiting thread. This object is on that thread's stack.
struct WaitingThread {
  std::atomic<std::uint32_t> resumed{0};
};

void resume_thread(WaitingThread* thread) {
  std::atomic<std::uint32_t>* const word = &thread->resumed;
  word->store(1, std::memory_order_release);
  // The thread may be gone by now: then this wakes nobody, or a waiter that checks again.
  syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

detail::Word word_of_fiber(const runtime::Fiber& fiber) {
  return detail::word_of(&fiber, detail::WordKind::fiber, runtime::Worker::note_of(fiber).tag);
}

}  // namespace

namespace runtime {

void suspend_thread(bool (*publish)(void*, detail::Waiter), void* closure) {
  WaitingThread self;
  if (!publish(closure, waiter_of_kind(&self, Kind::thread))) return;
  while (self.resumed.load(std::memory_order_acquire) == 0) {
    syscall(SYS_futex, &self.resumed, FUTEX_WAIT_PRIVATE, 0, nullptr, nullptr, 0);
  }
}

void unsuspend(Fiber& fiber) { Worker::here()->make_ready(word_of_fiber(fiber)); }

}  // namespace runtime

namespace detail {

using runtime::Fiber;
using runtime::Team;
using runtime::Worker;

Waiter waiter_of(Job* job) { return waiter_of_kind(job, Kind::job); }
Waiter call_of(Job* job) { return waiter_of_kind(job, Kind::call); }

[[gnu::noinline]] void suspend(bool (*publish)(void* closure, Waiter handle), void* closure) {
  runtime::suspend_inline([&](Waiter handle) { return publish(closure, handle); });
}

namespace {

void make_ready_in(Team& team, Word word) {
  Worker* const worker = Worker::here();
  if (worker != nullptr && &worker->team == &team) {
    worker->make_ready(word);
  } else {
    team.inject_as_visitor(word);
  }
}

}  // namespace

void start_from_anywhere(Word home, Job* job) {
  if (home == 0) return job->execute(job);
  const auto* const head = static_cast<WorkerHead*>(pointer_of(home));
  make_ready_in(static_cast<const Worker*>(head)->team, word_of(job, WordKind::job, tag_of(home)));
}

void resume(Waiter handle) {
  const auto bits = static_cast<std::uintptr_t>(handle);
  void* const pointer = reinterpret_cast<void*>(bits & ~kKind);
  Worker* const worker = Worker::here();
  if (static_cast<Kind>(bits & kKind) == Kind::fiber) [[likely]] {
    const Fiber& fiber = *static_cast<Fiber*>(pointer);
    Worker* const last = Worker::note_of(fiber).worker;
    const Word word = word_of_fiber(fiber);
    return last == worker ? worker->make_ready(word) : make_ready_in(last->team, word);
  }
  switch (static_cast<Kind>(bits & kKind)) {
    case Kind::fiber: return;  // above
    case Kind::thread: return resume_thread(static_cast<WaitingThread*>(pointer));
    case Kind::job: {
      auto* const job = static_cast<Job*>(pointer);
      // Tasks end on workers; only a job that was completed from elsewhere is called in place.
      if (worker == nullptr) return job->execute(job);
      worker->make_ready(word_of(job, WordKind::job, 0));
      return;
    }
    case Kind::call: {
      auto* const job = static_cast<Job*>(pointer);
      job->execute(job);
    }
  }
}

void Completion::wait_slow() noexcept {
  runtime::suspend_inline([this](Waiter handle) { return leave(handle); });
}

}  // namespace detail
}  // namespace atl
