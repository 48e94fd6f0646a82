// Atoll's own runtime, as its documentation says to use it.
#pragma once

#include <atoll/runtime/fork.hpp>
#include <atoll/runtime/runtime.hpp>
#include <atoll/runtime/scope.hpp>
#include <atoll/runtime/task.hpp>
#include <atoll/runtime/this_task.hpp>
#include <cstddef>
#include <utility>
#include <vector>

#if __has_include(<atoll/runtime/parallel_for.hpp>)
#include <atoll/runtime/parallel_for.hpp>
#endif
#if __has_include(<atoll/runtime/event.hpp>)
#include <atoll/runtime/event.hpp>
#endif
#if __has_include(<atoll/runtime/barrier.hpp>)
#include <atoll/runtime/barrier.hpp>
#endif

#include "backend.hpp"

namespace atl::perf {

class Backend {
 public:
  static constexpr const char* kName = "Atoll " ATOLL_VERSION;
  static constexpr Weight kWeight = Weight::kTask;

  explicit Backend(Setup setup) : runtime_(options_of(setup)) {}

  template <class F>
  void run(F&& f) {
    runtime_.run(std::forward<F>(f));
  }

  template <class Last>
  static void all(Last&& last) {
    last();
  }
  template <class First, class... Rest>
  static void all(First&& first, Rest&&... rest) {
    auto child = atl::fork(std::forward<First>(first));
    all(std::forward<Rest>(rest)...);
    child.join();
  }

  using Children = atl::Scope;
#if __has_include(<atoll/runtime/event.hpp>)
  using Event = atl::Event;
#endif
#if __has_include(<atoll/runtime/barrier.hpp>)
  using Barrier = atl::Barrier;
#endif

  template <class F>
  static auto spawn(F&& f) {
    return atl::spawn(std::forward<F>(f));
  }
  static void yield() { atl::yield(); }

#if __has_include(<atoll/runtime/parallel_for.hpp>)
  template <class Body>
  void parallel_for(std::size_t n, Body body) {
    runtime_.run([n, &body] { atl::parallel_for(std::size_t{0}, n, body); });
  }

#endif
  // Each on a core of its own, as the others have threads.
  template <class F>
  void team(F&& f) {
    std::vector<atl::Task<>> members;
    int rank = 0;
    for (const int core : runtime_.cores()) {
      members.push_back(runtime_.spawn(atl::on_core(core), [&f, rank] { f(rank); }));
      ++rank;
    }
    for (atl::Task<>& member : members) member.join();
  }

 private:
  static atl::RuntimeOptions options_of(Setup setup) {
    atl::RuntimeOptions options;
    options.workers = setup.threads;
    if (setup.million_tasks) options.stacks.kind = atl::StackOptions::Kind::slab;
    return options;
  }

  atl::Runtime runtime_;
};

}  // namespace atl::perf
