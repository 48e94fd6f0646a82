// The cost of a stack switch alone. docs/runtime-stacks.md has the command.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "stacks/fiber.hpp"
#include "stacks/stack.hpp"

namespace atl::runtime {
namespace {

// The minimum of many short runs, because other programs can only add time.
void least(benchmark::internal::Benchmark* rows) {
  rows->Repetitions(50)->MinTime(0.02)->ReportAggregatesOnly()->ComputeStatistics(
      "least",
      [](const std::vector<double>& ns) { return *std::min_element(ns.begin(), ns.end()); });
}

// Fibers that run in turn, with the thread after the last.
struct Ring {
  Ring(std::size_t size, FiberEntry entry) {
    for (std::size_t i = 0; i < size; ++i) fibers.push_back(pool.take(0, entry));
  }
  Fiber& after(std::size_t at) { return at + 1 < fibers.size() ? *fibers[at + 1] : thread; }

  StackPool pool{{}};
  Fiber thread = thread_fiber();
  std::vector<Fiber*> fibers;
  std::size_t begun = 0;
};

[[gnu::always_inline]] inline void* in_line(Fiber& from, Fiber& to, void* passed) {
  save_control(from.context);
  return switch_context(from.context, to.context, passed);
}
[[gnu::noinline]] void* by_call(Fiber& from, Fiber& to, void* passed) {
  save_control(from.context);
  return switch_context(from.context, to.context, passed);
}

template <auto kSwitch>
void turns(void* passed) {
  Ring& ring = *static_cast<Ring*>(passed);
  const std::size_t me = ring.begun++;
  Fiber& self = *ring.fibers[me];
  Fiber& next = ring.after(me);
  for (;;) kSwitch(self, next, &ring);
}

// Time per switch.
template <auto kSwitch>
void ring_of(benchmark::State& state) {
  const auto fibers = static_cast<std::size_t>(state.range(0)) - 1;  // the thread counts as one
  Ring ring(fibers, &turns<kSwitch>);
  while (state.KeepRunningBatch(state.range(0))) kSwitch(ring.thread, *ring.fibers[0], &ring);
}

#if defined(__x86_64__) && !defined(ATOLL_CONTEXT_BOOST)
void read_control_words(benchmark::State& state) {
  Context context{};
  for (auto _ : state) save_control(context);
}
BENCHMARK(read_control_words)->Apply(least);
#endif

BENCHMARK(ring_of<in_line>)->Arg(2)->Arg(64)->Apply(least);
BENCHMARK(ring_of<by_call>)->Arg(2)->Arg(64)->Apply(least);

}  // namespace
}  // namespace atl::runtime

BENCHMARK_MAIN();
