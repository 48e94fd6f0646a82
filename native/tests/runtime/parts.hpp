// Shared parts of the runtime's tests: made-up machines whose cores use the real CPUs, work to
// fork, children of fork().
#pragma once

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <thread>
#include <vector>

#include "atoll/runtime/fork.hpp"
#include "atoll/runtime/options.hpp"

namespace atl::test {

// The CPUs that this process may use.
inline std::vector<int> real_cpus() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  sched_getaffinity(0, sizeof mask, &mask);
  std::vector<int> cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(static_cast<std::size_t>(cpu), &mask)) cpus.push_back(cpu);
  }
  return cpus;
}

inline Places eight_on_four_chiplets() {
  return synthetic_places("node:2 chiplet:2 core:2", real_cpus());
}

// Workers stay where they are unless the test moves them: on a slow machine a test may last long
// enough for `adaptive` to try another spread, which changes the known places.
inline RuntimeOptions with_workers(int workers) {
  RuntimeOptions options;
  options.workers = workers;
  options.places = eight_on_four_chiplets();
  options.approach = "static-local";
  return options;
}

inline long fib(int n) {
  if (n < 2) return n;
  auto left = atl::fork([n] { return fib(n - 1); });
  const long right = fib(n - 2);
  return left.join() + right;
}

// Whether the condition holds before a minute is over.
bool soon(auto&& condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

// Whether a child of fork() may have a runtime of its own. ThreadSanitizer lets the child of a
// process with threads start none, and to that child AddressSanitizer's allocator may come locked,
// by a thread that is not there (GCC 12).
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
#define ATL_TEST_CHILDREN_HAVE_THREADS
#endif

// The exit status of `child` in a child of fork(), or 128 plus the signal that ended it. Ends a
// child that hangs, which a timeout of its parent would leave behind.
template <class Child>
int in_a_child(Child&& child) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    alarm(60);
    [&child]() noexcept { std::_Exit(child()); }();  // never on into the parent's tests
  }
  int status = 0;
  if (pid < 0 || waitpid(pid, &status, 0) != pid) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace atl::test
