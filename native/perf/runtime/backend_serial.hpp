// No runtime: a fork is a call, which the compiler must not see through (it would know fib's
// answer). What the kernel itself costs.
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

  template <class Body>
  void parallel_for(std::size_t n, Body body) {
    for (std::size_t i = 0; i < n; ++i) body(i);
  }

 private:
  template <class F>
  [[gnu::noipa]] static void call(F& f) {
    f();
  }
};

}  // namespace atl::perf
