// A stack overflow ends in a message. The guard below a stack stops it; the handler here, on
// an alternate stack because the task's own is full, reports what happened and lets the signal take
// its default effect. Every other fault goes to the previous handler.
#pragma once

#include <csignal>
#include <cstddef>

#include "fiber.hpp"

namespace atl::runtime {

// For SIGSEGV and SIGBUS of the whole process, once; later calls do nothing. Never removed: a
// handler installed later may still call it. `running` returns the fiber that the calling thread
// runs, or null; it must be async-signal-safe. Throws RuntimeFault if sigaction fails.
void install_overflow_handler(const Fiber* (*running)() noexcept);

// An alternate signal stack for the calling thread until the end of the scope, which restores the
// previous one. Made and destroyed on the same thread. Throws RuntimeFault without memory.
class AlternateStack {
 public:
  AlternateStack();
  ~AlternateStack();
  AlternateStack(const AlternateStack&) = delete;
  AlternateStack& operator=(const AlternateStack&) = delete;

 private:
  void* memory_;
  std::size_t bytes_;
  stack_t previous_{};
};

// Whether the calling thread has an alternate stack: the user's, or now one of ours, until the
// thread's destructors end it. False after that, and without memory. A system call the first time.
bool has_alternate_stack() noexcept;

}  // namespace atl::runtime
