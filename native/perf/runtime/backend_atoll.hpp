// Atoll's own runtime, used as its documentation recommends.
#pragma once

#include <atoll/runtime.hpp>
#include <cstddef>
#include <utility>

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
  using Event = atl::Event;
  using Barrier = atl::Barrier;

  template <class F>
  static auto spawn(F&& f) {
    return atl::spawn(std::forward<F>(f));
  }
  static void yield() { atl::yield(); }
  template <class F>
  void run_in_group(F&& f) {
    atl::Group(runtime_).run(std::forward<F>(f));
  }

  void make_group() { const atl::Group group(runtime_); }

  template <class MakeBody>
  void loops(int times, std::size_t n, MakeBody&& make_body) {
    runtime_.run([&] {
      for (int i = 0; i < times; ++i) atl::parallel_for(std::size_t{0}, n, make_body());
    });
  }

  template <class Items>
  void sort(Items& items) {
    runtime_.run([&] { atl::parallel_sort(items.begin(), items.end()); });
  }

  template <class F>
  void team(F&& f) {
    runtime_.run([&f] { atl::all_do(f); });
  }

  template <class F>
  static void in_section(F&& f) {
    const atl::Section section("morsel");
    f();
  }
  [[nodiscard]] long sections_entered() const {
    long entered = 0;
    for (const atl::SectionProfile& section : atl::section_totals(runtime_.profile())) {
      entered += static_cast<long>(section.entered);
    }
    return entered;
  }

 private:
  static constexpr std::size_t kTraceEvents = 65'536;

  static atl::RuntimeOptions options_of(Setup setup) {
    atl::RuntimeOptions options;
    options.workers = setup.threads;
    if (setup.million_tasks) options.stacks.kind = atl::StackOptions::Kind::slab;
    if (setup.trace) options.trace_events = kTraceEvents;
    return options;
  }

  atl::Runtime runtime_;
};

}  // namespace atl::perf
