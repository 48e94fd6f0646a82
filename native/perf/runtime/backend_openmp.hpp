// The compiler's OpenMP (libgomp): tasks in a parallel region whose first thread runs the kernel.
// perf/runtime.py binds its threads and chooses its wait policy through the environment.
#pragma once

#include <omp.h>

#include <cstddef>
#include <utility>

#include "backend.hpp"

#define ATOLL_PERF_TEXT_OF(x) #x
#define ATOLL_PERF_TEXT(x) ATOLL_PERF_TEXT_OF(x)

namespace atl::perf {

class Backend {
 public:
  static constexpr const char* kName =
      "OpenMP " ATOLL_PERF_TEXT(_OPENMP) " of gcc " ATOLL_PERF_TEXT(__GNUC__);
  static constexpr Weight kWeight = Weight::kTask;
  static constexpr bool kWakesTeams = true;

  explicit Backend(Setup setup) : threads_(setup.threads) {}

  template <class F>
  void run(F&& f) {
#pragma omp parallel num_threads(threads_)
#pragma omp master
    f();
  }

  template <class... F>
  static void all(F&&... f) {
    fork_all_but_last(f...);
#pragma omp taskwait
  }

  class Children {
   public:
    template <class F>
    void fork(F f) {
#pragma omp task firstprivate(f)
      f();
    }
    void join() {
#pragma omp taskwait
    }
  };

  template <class MakeBody>
  void loops(int times, std::size_t n, MakeBody&& make_body) {
    for (int time = 0; time < times; ++time) {
      const auto body = make_body();
#pragma omp parallel for schedule(static) num_threads(threads_) firstprivate(body)
      for (std::size_t i = 0; i < n; ++i) body(i);
    }
  }

  template <class F>
  void team(F&& f) {
#pragma omp parallel num_threads(threads_)
    f(omp_get_thread_num());
  }

  class Barrier {
   public:
    explicit Barrier(int) {}
    void arrive_and_wait() {
#pragma omp barrier
    }
  };

 private:
  template <class Last>
  static void fork_all_but_last(Last& last) {
    last();
  }
  template <class First, class... Rest>
  static void fork_all_but_last(First& first, Rest&... rest) {
#pragma omp task shared(first)
    first();
    fork_all_but_last(rest...);
  }

  int threads_;
};

}  // namespace atl::perf
