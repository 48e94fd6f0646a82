// Counts instead of times: how many system calls and locked instructions a piece of code costs, and
// how many threads wake each other in turn. A count is the same on every machine.
//
// System calls: futex and membarrier go through libc's `syscall`, which this program replaces.
// Locked instructions: the processor stops after each instruction (the trap flag), and the handler
// looks at the next one.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "atoll/runtime.hpp"
#include "runtime/parts.hpp"
#include "scheduler/team.hpp"

// Sanitizers add calls and locks of their own.
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
#define ATL_TEST_COUNTS

namespace atl::test {

struct Calls {
  long futex;
  long membarrier;
};
inline Calls operator-(Calls left, Calls right) {
  return {left.futex - right.futex, left.membarrier - right.membarrier};
}
Calls calls_of_all();
Calls calls_of_this_thread();

template <class Call>
Calls system_calls_of(Call&& call) {
  const Calls before = calls_of_all();
  call();
  return calls_of_all() - before;
}

// Of futex calls that wake, since it was made. One at a time.
class WakeWatch {
 public:
  WakeWatch();
  ~WakeWatch();
  WakeWatch(const WakeWatch&) = delete;
  WakeWatch& operator=(const WakeWatch&) = delete;

  // If this thread made it.
  long by_this_thread() const;
  // How many wake each other in turn: 1 for a thread that is woken by one that was not.
  int longest_chain() const;

 private:
  long before_;
};

// Stops this thread before each of its instructions, from when it is made until `end`, and calls
// `look(next)` with the instruction's bytes. One at a time.
class Steps {
 public:
  explicit Steps(void (*look)(const std::uint8_t* next));
  // How many there were.
  long end();

 private:
  struct sigaction before_{};
};

// Locked instructions of this thread, from when it is made until `end`. One at a time.
class LockedCount {
 public:
  LockedCount();
  long end();

 private:
  Steps steps_;
};

// Of one call; the first calls do not count.
template <class Call>
double locked_instructions_of(Call&& call, int times = 50) {
  for (int i = 0; i < times; ++i) call();
  LockedCount count;
  for (int i = 0; i < times; ++i) call();
  return static_cast<double>(count.end()) / times;
}

// All instructions of this thread, likewise.
template <class Call>
double instructions_of(Call&& call, int times) {
  for (int i = 0; i < times; ++i) call();
  Steps all([](const std::uint8_t*) {});
  for (int i = 0; i < times; ++i) call();
  return static_cast<double>(all.end()) / times;
}

class WithWorkers : public testing::TestWithParam<int> {
 protected:
  static RuntimeOptions options() {
    RuntimeOptions options = with_workers(GetParam());
    options.places = synthetic_places("node:2 chiplet:8 core:8", real_cpus());
    options.interval = std::chrono::hours(1);  // no governor in between
    return options;
  }

  // Until this number of workers sleep.
  static void await_asleep(Runtime& runtime, int workers) {
    while (runtime.team().parking.committed() < workers) std::this_thread::yield();
  }
};

inline std::string workers_name(const testing::TestParamInfo<int>& info) {
  return std::to_string(info.param);
}

}  // namespace atl::test

#endif
