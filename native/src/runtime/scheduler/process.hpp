// What a runtime has to do with the process that it is in: fork() and signals.
#pragma once

#include <csignal>
#include <cstdint>
#include <mutex>

namespace atl::runtime {

// The number of fork() calls between the program's start and this process. Unlike getpid, it is no
// system call. The first call counts, and may throw std::bad_alloc; make it before the first thread
// that may fork.
std::uint32_t forks_before();

// From now on fork() holds this lock of the process while it copies, so that no other thread has it
// in the child. Holders must not take another such lock.
void hold_over_fork(std::mutex& mutex);

// While it lives, threads that are started here inherit a mask that blocks asynchronous signals: a
// handler of the user's would run on a task's small stack. It leaves those that an instruction
// raises, and SIGPROF and SIGABRT, which are meant for the thread that they reach.
class SignalsBlocked {
 public:
  SignalsBlocked() noexcept;
  ~SignalsBlocked();
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

}  // namespace atl::runtime
