// Suspending and resuming, of tasks and of threads that are no workers.
#include "atoll/runtime/detail/suspend.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "worker.hpp"

namespace atl::detail {

namespace {

using runtime::After;
using runtime::Fiber;
using runtime::Team;
using runtime::Worker;

enum class Kind : std::uintptr_t { fiber = 0, thread = 1, job = 2 };
constexpr std::uintptr_t kKind = 3;

Waiter waiter_of(const void* pointer, Kind kind) {
  return Waiter{reinterpret_cast<std::uintptr_t>(pointer) | static_cast<std::uintptr_t>(kind)};
}

// A thread that waits. It lies on that thread's stack.
struct WaitingThread {
  std::atomic<std::uint32_t> resumed{0};
};

void suspend_thread(bool (*publish)(void*, Waiter), void* closure) {
  WaitingThread self;
  if (!publish(closure, waiter_of(&self, Kind::thread))) return;
  while (self.resumed.load(std::memory_order_acquire) == 0) {
    syscall(SYS_futex, &self.resumed, FUTEX_WAIT_PRIVATE, 0, nullptr, nullptr, 0);
  }
}

void resume_thread(WaitingThread* thread) {
  std::atomic<std::uint32_t>* const word = &thread->resumed;
  word->store(1, std::memory_order_release);
  // The thread may be gone by now: then this wakes nobody, or somebody who looks again.
  syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

// What a fiber keeps while it is suspended: its team and its domain.
void leave_note(Fiber& fiber, const Worker& worker) {
  fiber.user[0] = &worker.team;
  fiber.user[1] = reinterpret_cast<void*>(static_cast<std::uintptr_t>(worker.tag));
}
Team& team_of(const Fiber& fiber) { return *static_cast<Team*>(fiber.user[0]); }
Word word_of_fiber(const Fiber& fiber) {
  return word_of(&fiber, WordKind::fiber, reinterpret_cast<std::uintptr_t>(fiber.user[1]));
}

struct Publication : After {
  bool (*publish)(void*, Waiter);
  void* closure;
  Fiber* fiber;
};

void run_publication(After* after) {
  const Publication publication = *static_cast<Publication*>(after);
  if (!publication.publish(publication.closure, waiter_of(publication.fiber, Kind::fiber))) {
    Worker::here()->make_ready(word_of_fiber(*publication.fiber));
  }
}

}  // namespace

Waiter waiter_of(Job* job) { return waiter_of(job, Kind::job); }

[[gnu::noinline]] void suspend(bool (*publish)(void* closure, Waiter handle), void* closure) {
  Worker* const before = Worker::here();
  if (before == nullptr) return suspend_thread(publish, closure);
  Fiber& self = before->fiber();
  leave_note(self, *before);
  const Worker::Belongings belongings = before->leave();

  Publication publication{{run_publication}, publish, closure, &self};
  before->switch_away(&publication);

  Worker::here()->take_up(belongings);
}

void resume(Waiter handle) {
  const auto bits = static_cast<std::uintptr_t>(handle);
  void* const pointer = reinterpret_cast<void*>(bits & ~kKind);
  Worker* const worker = Worker::here();
  switch (static_cast<Kind>(bits & kKind)) {
    case Kind::thread: return resume_thread(static_cast<WaitingThread*>(pointer));
    case Kind::fiber: {
      const Fiber& fiber = *static_cast<Fiber*>(pointer);
      Team& team = team_of(fiber);
      const Word word = word_of_fiber(fiber);
      if (worker != nullptr && &worker->team == &team) {
        worker->make_ready(word);
      } else {
        team.inject_as_visitor(word);
      }
      return;
    }
    case Kind::job: {
      auto* const job = static_cast<Job*>(pointer);
      // Tasks end on workers; only a job that was completed from elsewhere is called in place.
      if (worker == nullptr) return job->execute(job);
      worker->make_ready(word_of(job, WordKind::job, 0));
    }
  }
}

void Completion::wait_slow() {
  suspend([this](Waiter handle) { return leave(handle); });
}

}  // namespace atl::detail
