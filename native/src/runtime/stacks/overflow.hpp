// A stack overflow ends in a message. The guard page below a stack stops it; the handler here, on
// an alternate stack because the task's own has no room left, says what happened and lets the
// signal do what it does by default. Every other fault goes to whoever handled it before.
#pragma once

#include <csignal>
#include <cstddef>

namespace atl::runtime {

// For SIGSEGV and SIGBUS of the whole process, once; later calls do nothing. Stays for good: who
// installed a handler after it may call it still. Throws RuntimeFault if sigaction fails.
void install_overflow_handler();

// An alternate signal stack for the calling thread, from here to the end of the scope; what the
// thread had before is put back. Made and destroyed on the same thread. Throws RuntimeFault if
// there is no memory.
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
