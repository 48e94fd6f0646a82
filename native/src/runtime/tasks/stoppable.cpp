#include "atoll/runtime/stoppable.hpp"

#include "scheduler/worker.hpp"
#include "waiting/timer.hpp"

namespace atl {

using runtime::Timer;
using runtime::Worker;

const char* Stopped::what() const noexcept {
  return "a loop was asked to stop and has left items out";
}

struct Stoppable::Alarm : Timer::Entry {
  explicit Alarm(detail::TaskContext& stops) : context(stops) {
    ring = [](Timer::Entry* entry) { static_cast<Alarm*>(entry)->context.request_stop(); };
  }
  ~Alarm() { Timer::instance().remove(*this); }

  detail::TaskContext& context;
};

Stoppable::Stoppable(const std::stop_token& stop, detail::Deadline limit)
    : outer_(detail::worker_or_fault("Stoppable")->context), context_(outer_) {
  if (limit != detail::kNever) {
    alarm_ = std::make_unique<Alarm>(context_);
    Timer::instance().add(*alarm_, limit);
  }
  if (stop.stop_possible()) stop_.emplace(stop, Forward{&context_});
  Worker::here()->context = &context_;  // last: nothing throws any more
}

// After the two are gone, nobody asks any more.
Stoppable::~Stoppable() { Worker::here()->context = outer_; }

namespace detail {

void between_pieces() {
  Worker::here()->let_urgent_in();
  const TaskContext* const context = Worker::here()->context;
  if (context != nullptr && context->stop_requested()) [[unlikely]]
    throw Stopped();
}

}  // namespace detail

}  // namespace atl
