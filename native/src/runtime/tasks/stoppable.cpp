#include "atoll/runtime/stoppable.hpp"

#include "atoll/runtime/detail/suspend.hpp"
#include "scheduler/worker.hpp"
#include "waiting/timer.hpp"

namespace atl {

using runtime::Timer;
using runtime::Worker;

const char* Stopped::what() const noexcept {
  return "a loop was asked to stop and has left items out";
}

struct Stoppable::Alarm : Timer::Entry {
  Alarm(detail::TaskContext& stops, detail::Deadline limit) : context(stops) {
    ring = [](Timer::Entry* entry) {
      auto* const self = static_cast<Alarm*>(entry);
      self->context.request_stop();
      self->rung.complete();
    };
    Timer::limits().add(*this, limit);  // throws here, so that nothing waits for what never rings
  }
  // Leaves its worker while the request calls: callbacks may wait for what only that may run.
  ~Alarm() {
    if (!Timer::limits().remove(*this)) rung.wait();
  }

  detail::TaskContext& context;
  detail::Completion rung;
};

Stoppable::Stoppable(const std::stop_token& stop, detail::Deadline limit)
    : outer_(detail::worker_or_fault("Stoppable")->context), context_(outer_) {
  if (limit != detail::kNever) alarm_ = std::make_unique<Alarm>(context_, limit);
  if (stop.stop_possible()) stop_.emplace(stop, Forward{&context_});
  Worker::here()->context = &context_;  // last: nothing throws any more
}

// After the two are gone, nobody asks any more.
Stoppable::~Stoppable() {
  // A coroutine may have gone on on another thread.
  if (Worker* const worker = Worker::here()) worker->context = outer_;
}

namespace detail {

void between_pieces() {
  Worker::here()->let_urgent_in();
  const TaskContext* const context = Worker::here()->context;
  if (context != nullptr && context->stop_requested()) [[unlikely]]
    throw Stopped();
}

}  // namespace detail

}  // namespace atl
