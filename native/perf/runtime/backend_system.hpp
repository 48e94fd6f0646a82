// The language and the kernel alone: std::async with a thread per task, std::barrier between
// threads bound to separate CPUs, and a bare futex for the wake-up (kernel_wake.hpp).
#pragma once

#include <sched.h>

#include <barrier>
#include <future>
#include <thread>
#include <utility>
#include <vector>

#include "backend.hpp"

namespace atl::perf {

class Backend {
 public:
  static constexpr const char* kName = "std::async, std::barrier, futex";
  static constexpr Weight kWeight = Weight::kThread;
  static constexpr bool kHasFutex = true;

  explicit Backend(Setup setup) : threads_(setup.threads) {}

  template <class F>
  void run(F&& f) {
    f();
  }

  template <class... F>
  static void all(F&&... f) {
    fork_all_but_last(std::forward<F>(f)...);
  }

  class Children {
   public:
    template <class F>
    void fork(F&& f) {
      futures_.push_back(std::async(std::launch::async, std::forward<F>(f)));
    }
    void join() {
      for (std::future<void>& future : futures_) future.get();
    }

   private:
    std::vector<std::future<void>> futures_;
  };

  template <class F>
  void team(F&& f) {
    std::vector<std::jthread> others;
    for (int rank = 1; rank < threads_; ++rank) {
      others.emplace_back([&f, rank] {
        sit_on(rank);
        f(rank);
      });
    }
    cpu_set_t before;
    sched_getaffinity(0, sizeof before, &before);
    sit_on(0);
    f(0);
    sched_setaffinity(0, sizeof before, &before);
  }

  class Barrier {
   public:
    explicit Barrier(int threads) : barrier_(threads) {}
    void arrive_and_wait() { barrier_.arrive_and_wait(); }

   private:
    std::barrier<> barrier_;
  };

 private:
  // The rank-th CPU that the thread may use.
  static void sit_on(int rank) {
    cpu_set_t may;
    sched_getaffinity(0, sizeof may, &may);
    int seen = 0;
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (CPU_ISSET(cpu, &may) && seen++ == rank) {
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        sched_setaffinity(0, sizeof one, &one);
        return;
      }
    }
  }

  template <class Last>
  static void fork_all_but_last(Last&& last) {
    last();
  }
  template <class First, class... Rest>
  static void fork_all_but_last(First&& first, Rest&&... rest) {
    std::future<void> future = std::async(std::launch::async, std::forward<First>(first));
    fork_all_but_last(std::forward<Rest>(rest)...);
    future.get();
  }

  int threads_;
};

}  // namespace atl::perf
