// A stack overflow ends in a message. The guard page below a stack stops it; the handler here, on
// an alternate stack because the task's own is full, reports what happened and lets the signal take
// its default effect. Every other fault goes to the previous handler.
#pragma once

#include <csignal>
#include <cstddef>

namespace atl::runtime {

// For SIGSEGV and SIGBUS of the whole process, once; later calls do nothing. Never removed: a
// handler installed later may still call it. Throws RuntimeFault if sigaction fails.
void install_overflow_handler();

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

}  // namespace atl::runtime
