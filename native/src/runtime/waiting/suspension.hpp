// detail::suspend for the library's own use: inlined, because every frame between a switch and the
// user's code is another return that the CPU mispredicts. And detail::resume for several waiters.
#pragma once

#include <optional>

#include "scheduler/wake_tree.hpp"
#include "scheduler/worker.hpp"

namespace atl::runtime {

// detail::suspend on a thread that is not a worker.
void suspend_thread(bool (*publish)(void* closure, detail::Waiter handle), void* closure);

// The waiter of a suspended fiber is its address (suspend.cpp).
inline detail::Waiter waiter_of(Fiber& fiber) {
  return detail::Waiter{reinterpret_cast<std::uintptr_t>(&fiber)};
}
// Makes a task ready that was suspended although there was nothing to wait for.
void unsuspend(Fiber& fiber);

// As detail::suspend. Only in functions that are not inlined into users' code (fiber.hpp).
template <class Publish>
[[gnu::always_inline]] inline void suspend_inline(Publish&& publish) {
  using Closure = std::remove_reference_t<Publish>;
  struct Publication : After {
    Closure* publish;
    Fiber* fiber;
  };
  Worker* const worker = Worker::here();
  if (worker == nullptr) {
    return suspend_thread(
        [](void* closure, detail::Waiter handle) {
          return (*static_cast<Closure*>(closure))(handle);
        },
        &publish);
  }
  Publication publication{{[](After* after) noexcept {
                            // A copy: once the handle is out, the other stack may go on.
                            const Publication it = *static_cast<Publication*>(after);
                            if (!(*it.publish)(waiter_of(*it.fiber))) unsuspend(*it.fiber);
                          }},
                          &publish,
                          &worker->fiber()};
  worker->leave_for_next(&publication);
}

// Resumes several waiters, of any kinds and teams: makes tasks ready, and then wakes as many
// workers as there are tasks, and the waiting threads. They wake as trees, when this ends at the
// latest. So of 256 waiters the caller makes at most one system call for the threads and one for
// the workers of a team, where the waiters of a team come one after the other. Those that are
// called in place come last of all, since a call may take long. Needs no memory.
class Resumptions {
 public:
  Resumptions() = default;
  ~Resumptions();
  Resumptions(const Resumptions&) = delete;
  Resumptions& operator=(const Resumptions&) = delete;

  void add(detail::Waiter waiter) noexcept;

 private:
  void let_run() noexcept;
  void make_ready(Team& team, Word word) noexcept;

  std::optional<Team::Visit> visit_;  // holds workers
  WakeTree threads_;
  int held_ = 0;
  detail::Word calls_ = 0;  // the address of the last job to call, which links the one before
};

}  // namespace atl::runtime
