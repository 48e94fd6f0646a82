// No runtime: a fork is a call, hidden from the compiler (which would otherwise compute fib's
// answer). Measures the kernel itself.
#pragma once

#include <cstddef>
#include <utility>

#include "backend.hpp"

namespace atl::perf {

class Backend {
 public:
  static constexpr const char* kName = "no runtime";
  static constexpr Weight kWeight = Weight::kTask;
  static constexpr int kMostThreads = 1;

  explicit Backend(Setup) {}

  template <class F>
  void run(F&& f) {
    f();
  }

  template <class... F>
  static void all(F&&... f) {
    (call(f), ...);
  }

  class Children {
   public:
    template <class F>
    void fork(F&& f) {
      call(f);
    }
    void join() {}
  };

  template <class MakeBody>
  void loops(int times, std::size_t n, MakeBody&& make_body) {
    for (int time = 0; time < times; ++time) {
      const auto body = make_body();
      for (std::size_t i = 0; i < n; ++i) body(i);
      asm volatile("" ::: "memory");  // keeps the compiler from omitting all but the last
    }
  }

 private:
  template <class F>
  [[gnu::noipa]] static void call(F& f) {
    f();
  }
};

}  // namespace atl::perf
