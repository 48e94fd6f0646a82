// For tests of fibers: a routine that runs on its own fiber, is resumed by a thread and suspends
// back to it. After its body it parks in its entry loop, as a worker's loop does.
#pragma once

#include <functional>
#include <utility>

#include "stacks/fiber.hpp"
#include "stacks/stack.hpp"

namespace atl::runtime {

class Routine {
 public:
  Routine(StackPool& pool, std::function<void(Routine&)> body)
      : pool_(pool), body_(std::move(body)), fiber_(pool.take(0, &Routine::loop)) {}
  ~Routine() { pool_.give(fiber_); }
  Routine(const Routine&) = delete;
  Routine& operator=(const Routine&) = delete;

  // From any thread, one at a time: runs until the next suspend or the end.
  [[gnu::noinline]] void resume() {
    thread_ = &this_thread();
    switch_fiber(*thread_, *fiber_, exception_globals(), this);
  }
  // From the body.
  [[gnu::noinline]] void suspend() {
    switch_fiber(*fiber_, *thread_, exception_globals(), nullptr);
  }

  [[nodiscard]] bool done() const { return done_; }
  [[nodiscard]] Fiber& fiber() const { return *fiber_; }

 private:
  // Kept: for a main thread, thread_fiber() reads /proc/self/maps.
  [[gnu::noinline]] static Fiber& this_thread() {
    thread_local Fiber fiber = thread_fiber();
    return fiber;
  }
  static void loop(void* passed) {
    for (;;) passed = run(static_cast<Routine*>(passed));
  }
  [[gnu::noinline]] static void* run(Routine* routine) {
    routine->body_(*routine);
    routine->done_ = true;
    return switch_fiber(*routine->fiber_, *routine->thread_, exception_globals(), nullptr);
  }

  StackPool& pool_;
  std::function<void(Routine&)> body_;
  Fiber* fiber_;
  Fiber* thread_ = nullptr;
  bool done_ = false;
};

}  // namespace atl::runtime
