// oneTBB: task_group in an arena with one slot per thread (including the caller of `run`).
#pragma once

#include <oneapi/tbb/blocked_range.h>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/parallel_sort.h>
#include <oneapi/tbb/task_arena.h>
#include <oneapi/tbb/task_group.h>
#include <oneapi/tbb/version.h>

#include <cstddef>
#include <functional>
#include <utility>

#include "backend.hpp"

namespace atl::perf {

class Backend {
 public:
  static constexpr const char* kName = "oneTBB " TBB_VERSION_STRING;
  static constexpr Weight kWeight = Weight::kTask;

  explicit Backend(Setup setup)
      : threads_(oneapi::tbb::global_control::max_allowed_parallelism,
                 static_cast<std::size_t>(setup.threads)),
        arena_(setup.threads) {}

  template <class F>
  void run(F&& f) {
    arena_.execute(std::forward<F>(f));
  }

  // task_group is a third faster than parallel_invoke here.
  template <class... F>
  static void all(F&&... f) {
    oneapi::tbb::task_group group;
    fork_all_but_last(group, std::forward<F>(f)...);
    group.wait();
  }

  class Children {
   public:
    template <class F>
    void fork(F&& f) {
      group_.run(std::forward<F>(f));
    }
    void join() { group_.wait(); }

   private:
    oneapi::tbb::task_group group_;
  };

  template <class MakeBody>
  void loops(int times, std::size_t n, MakeBody&& make_body) {
    arena_.execute([&] {
      for (int time = 0; time < times; ++time) {
        oneapi::tbb::parallel_for(oneapi::tbb::blocked_range<std::size_t>(0, n),
                                  [body = make_body()](const auto& range) {
                                    for (std::size_t i = range.begin(); i != range.end(); ++i) {
                                      body(i);
                                    }
                                  });
      }
    });
  }

  template <class Items>
  void sort(Items& items) {
    arena_.execute([&] { oneapi::tbb::parallel_sort(items.begin(), items.end()); });
  }

 private:
  template <class Last>
  static void fork_all_but_last(oneapi::tbb::task_group&, Last&& last) {
    last();
  }
  template <class First, class... Rest>
  static void fork_all_but_last(oneapi::tbb::task_group& group, First&& first, Rest&&... rest) {
    group.run(std::forward<First>(first));
    fork_all_but_last(group, std::forward<Rest>(rest)...);
  }

  oneapi::tbb::global_control threads_;
  oneapi::tbb::task_arena arena_;
};

}  // namespace atl::perf
