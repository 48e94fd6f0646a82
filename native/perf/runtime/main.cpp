// Runs the kernels on one runtime with Google Benchmark. Each runtime has its own program, because
// idle threads of two runtimes in one process disturb each other. perf/runtime.py alternates them.
//
// A benchmark is KERNEL/THREADS. The counter `items` is the divisor of an iteration's time: forks,
// yields, barriers, items of a loop. Every answer is checked; a wrong answer is an error.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include ATOLL_PERF_BACKEND

#include "kernel_fork.hpp"
#include "kernel_profiler.hpp"
#include "kernel_suspend.hpp"
#include "kernel_team.hpp"
#include "kernel_wake.hpp"
#include "measure.hpp"

namespace atl::perf {
namespace {

constexpr std::int64_t kStealGapNs = 2'000;
constexpr std::int64_t kWakeGapNs = 500'000;
constexpr std::size_t kStealSamples = 100'000;
constexpr std::size_t kWakeSamples = 2'000;
constexpr long kYields = 100'000;
constexpr long kTasks = 20'000;
constexpr long kBatch = 100'000;
constexpr long kBarriers = 20'000;
constexpr long kGroups = 20'000;
constexpr std::size_t kLoopItems = 10'000'000;
constexpr int kLoops = 10;
constexpr std::size_t kSorted = 1'000'000;

template <class T>
constexpr T of_weight(T for_tasks, T for_fibers, T for_threads) {
  return sized(Backend::kWeight, for_tasks, for_fibers, for_threads);
}
constexpr int kFib = of_weight(30, 20, 15);
constexpr long kSkynetLeaves = of_weight(1'000'000L, 10'000L, 1'000L);
constexpr int kMatmul = of_weight(64, 32, 8);
constexpr std::size_t kQueens = of_weight<std::size_t>(12, 8, 6);
// A fiber of Boost has 128 KiB of stack, so there are fewer, and bytes are given per fiber.
constexpr long kCrowd = of_weight(1'000'000L, 100'000L, 1'000L);

// Google Benchmark calls a benchmark more than once; some runtimes can start only once.
struct Made {
  std::unique_ptr<Backend> runtime;
  Setup setup;
};
Made& made() {
  static Made made;
  return made;
}
Backend& runtime(Setup setup) {
  if (made().runtime == nullptr || made().setup != setup) {
    made().runtime.reset();
    made() = {std::make_unique<Backend>(setup), setup};
  }
  return *made().runtime;
}

// `once` does the whole work and reports whether its answer was right. The first call does not
// count, because of its page faults and new stacks.
template <class Once>
void measure(benchmark::State& state, int threads, double items, const char* what, Once once) {
  bool right = once();
  const Meter meter(threads);
  for (auto _ : state) right = once() && right;
  meter.report(state, items);
  expect(state, right, what);
}

using Body = std::function<void(benchmark::State&, int)>;  // of that many threads

benchmark::internal::Benchmark* add(const char* kernel, int threads, Body body) {
  return benchmark::RegisterBenchmark(
             (std::string(kernel) + "/" + std::to_string(threads)).c_str(),
             [threads, body](benchmark::State& state) { body(state, threads); })
      ->UseRealTime()
      ->Unit(benchmark::kNanosecond);
}

// ---- fork and join
// -------------------------------------------------------------------------------

template <class Runtime>
void fib_body(benchmark::State& state, int threads) {
  Runtime& on = runtime({.threads = threads});
  measure(state, threads, static_cast<double>(forks_of_fib(kFib)), "fib", [&on] {
    long found = 0;
    if constexpr (OwnTrees<Runtime>) {
      found = on.fib(kFib);
    } else {
      on.run([&found] { found = fib<Runtime>(kFib); });
    }
    return found == fib_of(kFib);
  });
}

template <class Runtime>
void skynet_body(benchmark::State& state, int threads) {
  Runtime& on = runtime({.threads = threads});
  measure(state, threads, static_cast<double>(forks_of_skynet(kSkynetLeaves)), "skynet", [&on] {
    long sum = 0;
    if constexpr (OwnTrees<Runtime>) {
      sum = on.skynet(0, kSkynetLeaves);
    } else {
      on.run([&sum] { sum = skynet<Runtime>(0, kSkynetLeaves); });
    }
    return sum == kSkynetLeaves * (kSkynetLeaves - 1) / 2;
  });
}

template <class Runtime>
void matmul_body(benchmark::State& state, int threads) {
  constexpr std::size_t kCells = static_cast<std::size_t>(kMatmul) * kMatmul;
  std::vector<float> a(kCells);
  std::vector<float> b(kCells);
  std::vector<float> c(kCells);
  std::vector<float> right(kCells);
  // Small whole numbers: every sum is exact, in any order.
  for (std::size_t i = 0; i < kCells; ++i) {
    a[i] = static_cast<float>(i % 7);
    b[i] = static_cast<float>(i % 5);
  }
  for (std::size_t row = 0; row < kMatmul; ++row) {
    for (std::size_t k = 0; k < kMatmul; ++k) {
      for (std::size_t column = 0; column < kMatmul; ++column) {
        right[row * kMatmul + column] += a[row * kMatmul + k] * b[k * kMatmul + column];
      }
    }
  }
  Runtime& on = runtime({.threads = threads});
  measure(state, threads, static_cast<double>(forks_of_matmul(kMatmul)), "matmul", [&] {
    c.assign(kCells, 0.0F);
    on.run([&] { matmul<Runtime>(c.data(), a.data(), b.data(), kMatmul, kMatmul); });
    return c == right;
  });
}

template <class Runtime>
void nqueens_body(benchmark::State& state, int threads) {
  Runtime& on = runtime({.threads = threads});
  const auto spawns = static_cast<double>(spawns_of_nqueens<kQueens>());
  measure(state, threads, spawns, "nqueens", [&on] {
    long ways = 0;
    on.run([&ways] { ways = nqueens<Runtime, kQueens>({}, 0); });
    return ways == queens_of(kQueens);
  });
}

// ---- the profiler
// --------------------------------------------------------------------------------

template <class Runtime>
void morsels_body(benchmark::State& state, int threads) {
  Runtime& on = runtime({.threads = threads});
  measure(state, threads, static_cast<double>(count_morsels<kQueens>()), "nqueens", [&on] {
    return nqueens_by_morsels<kQueens>(on, [](auto&& f) { f(); }) == queens_of(kQueens);
  });
}

template <class Runtime>
void profiled_morsels_body(benchmark::State& state, int threads) {
  Runtime& on = runtime({.threads = threads, .trace = true});
  const long morsels = count_morsels<kQueens>();
  long entered = on.sections_entered();
  measure(state, threads, static_cast<double>(morsels), "nqueens", [&] {
    entered += morsels;
    return nqueens_by_morsels<kQueens>(on, [](auto&& f) { Runtime::in_section(f); }) ==
           queens_of(kQueens);
  });
  expect(state, on.sections_entered() == entered, "a section was not counted");
}

// ---- tasks that suspend
// --------------------------------------------------------------------------

template <class Runtime>
void yield_body(benchmark::State& state, int threads) {
  Runtime& on = runtime({.threads = threads});
  measure(state, threads, 2.0 * kYields, "yield", [&on] {
    long switches = 0;
    on.run([&switches] { switches = yield_to_each_other<Runtime>(kYields); });
    return switches == 2 * kYields;
  });
}

template <class Runtime>
void spawn_yielding_body(benchmark::State& state, int threads) {
  Runtime& on = runtime({.threads = threads});
  measure(state, threads, kTasks, "spawn-yield", [&on] {
    long done = 0;
    on.run([&done] { done = spawn_yielding<Runtime>(kTasks / 2); });
    return done == kTasks / 2;
  });
}

template <class Runtime>
void spawn_waiting_body(benchmark::State& state, int threads) {
  Runtime& on = runtime({.threads = threads});
  measure(state, threads, kTasks, "spawn-wait", [&on] {
    long done = 0;
    on.run([&done] { done = spawn_waiting<Runtime>(kTasks); });
    return done == kTasks;
  });
}

// The same inside a group, where every word has a tag, or inside a section of the profiler.
template <class Runtime, bool kInSection>
void yield_inside_body(benchmark::State& state, int threads) {
  Runtime& on = runtime({.threads = threads});
  measure(state, threads, 2.0 * kYields, "yield", [&on] {
    long switches = 0;
    const auto yield = [&switches] { switches = yield_to_each_other<Runtime>(kYields); };
    if constexpr (kInSection) {
      on.run([&switches] {
        switches = yield_to_each_other<Runtime>(kYields, [](auto&& f) { Runtime::in_section(f); });
      });
    } else {
      on.run_in_group(yield);
    }
    return switches == 2 * kYields;
  });
}

template <class Runtime>
void yield_next_to_idle_body(benchmark::State& state, int threads) {
  Runtime& on = runtime({.threads = threads});
  measure(state, threads, 2.0 * threads * kYields, "yield", [&on, threads] {
    long yields = 0;
    on.run([&] { yields = yield_next_to_idle<Runtime>(threads, kYields); });
    return yields == 2 * threads * kYields;
  });
}

// Groups made and ended by one caller, in a task or in a thread that is no worker.
template <class Runtime, bool kInTask>
void group_body(benchmark::State& state, int threads) {
  Runtime& on = runtime({.threads = threads});
  measure(state, threads, kGroups, "group", [&on] {
    const auto make = [&on] {
      for (long i = 0; i < kGroups; ++i) on.make_group();
    };
    kInTask ? on.run(make) : make();
    return true;
  });
}

template <class Runtime>
void batch_body(benchmark::State& state, int threads) {
  Runtime& on = runtime({.threads = threads});
  measure(state, threads, kBatch, "batch", [&on] {
    long done = 0;
    on.run([&done] { done = spawn_batch<Runtime>(kBatch); });
    return done == kBatch;
  });
}

template <class Runtime>
void million_body(benchmark::State& state, int threads) {
  Runtime& on = runtime({.threads = threads, .million_tasks = true});
  const double before_bytes = peak_resident_bytes();
  const Meter meter(threads);
  Crowd crowd;
  for (auto _ : state) on.run([&crowd] { crowd = suspend_all<Runtime>(kCrowd); });
  meter.report(state, kCrowd);
  state.counters["peak_bytes"] = peak_resident_bytes();
  state.counters["task_bytes"] = (peak_resident_bytes() - before_bytes) / kCrowd;
  expect(state, crowd.live == kCrowd && crowd.finished == kCrowd, "a task was lost");
}

// ---- loops, barriers, wake-ups
// -------------------------------------------------------------------

template <class Runtime>
void parallel_for_body(benchmark::State& state, int threads) {
  Runtime& on = runtime({.threads = threads});
  std::vector<std::uint32_t> items(kLoopItems);
  std::uint32_t* const out = items.data();
  std::uint32_t salt = 0;
  measure(state, threads, static_cast<double>(kLoops * kLoopItems), "parallel-for", [&] {
    on.loops(kLoops, kLoopItems, [&] { return LightBody{out, ++salt}; });
    return is_done(items, salt, kLoopItems / 1009);
  });
  for (std::size_t i = 0; i < kLoopItems; ++i) {
    if (out[i] != light_item(i, salt)) return expect(state, false, "parallel-for left one out");
  }
}

template <class Runtime>
void sort_body(benchmark::State& state, int threads) {
  Runtime& on = runtime({.threads = threads});
  std::vector<std::uint32_t> mixed(kSorted);
  for (std::size_t i = 0; i < kSorted; ++i) mixed[i] = light_item(i, 1);
  std::vector<std::uint32_t> right = mixed;
  std::sort(right.begin(), right.end());
  std::vector<std::uint32_t> items;
  measure(state, threads, static_cast<double>(kSorted), "sort", [&] {
    items = mixed;
    on.sort(items);
    return items == right;
  });
}

template <class Runtime>
void barrier_body(benchmark::State& state, int threads) {
  Runtime& on = runtime({.threads = threads});
  expect(state, barriers_hold(on, threads, 1000), "a thread passed a barrier too early");
  measure(state, threads, kBarriers, "barrier", [&on, threads] {
    pass_barriers(on, threads, kBarriers);
    return true;
  });
}

void report_latencies(benchmark::State& state, Latencies found) {
  expect(state, found.has_value(), "a sample did not run on the other thread");
  if (found) report_quantiles(state, *found);
}

// `once` takes all samples in one iteration, because the time between samples does not count.
template <class Once>
void add_latency(const char* kernel, Once once) {
  add(kernel, 2, [once](benchmark::State& state, int threads) {
    Latencies found;
    const Meter meter(threads);
    for (auto _ : state) found = once(threads);
    meter.report(state, 1);
    report_latencies(state, std::move(found));
  })->Iterations(1);
}

template <class Runtime>
void idle_body(benchmark::State& state, int threads, int seconds) {
  Runtime& on = runtime({.threads = threads});
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  long found = 0;
  on.run([&found] { found = fib<Runtime>(kFib); });
  expect(state, found == fib_of(kFib), "fib");
  // OpenMP's threads spin for about 5 ms.
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  const double before_s = own_cpu_s();
  const Meter meter(threads);
  for (auto _ : state) std::this_thread::sleep_for(std::chrono::seconds(seconds));
  meter.report(state, 1);
  state.counters["idle_core_percent"] = 100 * (own_cpu_s() - before_s) / seconds;
}

// ---- which of them there are
// ---------------------------------------------------------------------

template <class Runtime>
constexpr int most_threads() {
  if constexpr (requires { Runtime::kMostThreads; }) return Runtime::kMostThreads;
  return std::numeric_limits<int>::max();
}

// 1, 2, 4 ... and all CPUs.
template <class Runtime>
std::vector<int> thread_counts() {
  const int cpus = std::max(2, static_cast<int>(std::thread::hardware_concurrency()));
  const int most = std::min(cpus, most_threads<Runtime>());
  std::vector<int> counts;
  for (int threads = 1; threads < most; threads *= 2) counts.push_back(threads);
  counts.push_back(most);
  return counts;
}

template <class Runtime>
void add_all() {
  for (const int threads : thread_counts<Runtime>()) {
    add("fib", threads, fib_body<Runtime>);
    add("skynet", threads, skynet_body<Runtime>);
    if constexpr (!OwnTrees<Runtime>) {
      add("matmul", threads, matmul_body<Runtime>);
      add("nqueens", threads, nqueens_body<Runtime>);
    }
    if constexpr (requires(Runtime r) { r.loops(1, 1, [] { return LightBody(); }); }) {
      add("parallel-for", threads, parallel_for_body<Runtime>);
    }
    if constexpr (requires(Runtime r, std::vector<std::uint32_t> items) { r.sort(items); }) {
      add("sort", threads, sort_body<Runtime>);
    }
  }
  if constexpr (requires { Runtime::in_section([] {}); }) {
    add("morsels", 2, morsels_body<Runtime>);
    add("morsels-profiled", 2, profiled_morsels_body<Runtime>);
  }
  if constexpr (requires { Runtime::yield(); }) {
    add("yield", 1, yield_body<Runtime>);
    add("spawn-yield", 1, spawn_yielding_body<Runtime>);
    for (const int threads : thread_counts<Runtime>()) add("batch", threads, batch_body<Runtime>);
  }
  if constexpr (requires(Runtime r) { r.run_in_group([] {}); }) {
    add("yield-group", 1, yield_inside_body<Runtime, false>);
    add("yield-section", 1, yield_inside_body<Runtime, true>);
    add("yield-idle", 2, yield_next_to_idle_body<Runtime>);
  }
  if constexpr (requires(Runtime r) { r.make_group(); }) {
    add("group", 2, group_body<Runtime, true>);
    add("group-outside", 2, group_body<Runtime, false>);
  }
  if constexpr (requires { typename Runtime::Event; }) {
    add("spawn-wait", 1, spawn_waiting_body<Runtime>);
    add("million", 1, million_body<Runtime>)->Iterations(1);
  }
  if constexpr (requires { typename Runtime::Barrier; }) {
    for (const int threads : thread_counts<Runtime>()) {
      if (threads > 1) add("barrier", threads, barrier_body<Runtime>);
    }
  }
  if constexpr (most_threads<Runtime>() > 1 && Runtime::kWeight == Weight::kTask &&
                !OwnTrees<Runtime>) {
    for (const auto& [kernel, samples, gap_ns] : {std::tuple("steal", kStealSamples, kStealGapNs),
                                                  std::tuple("wake", kWakeSamples, kWakeGapNs)}) {
      add_latency(kernel, [samples, gap_ns](int threads) {
        Latencies found;
        Runtime& on = runtime({.threads = threads});
        on.run([&] { found = fork_to_other<Runtime>(samples, gap_ns); });
        return found;
      });
    }
    add_latency("run", [](int threads) {
      return run_nothing(runtime({.threads = threads}), kWakeSamples, kWakeGapNs);
    });
    for (const int seconds : {2, 10}) {
      add(("idle-" + std::to_string(seconds) + "s").c_str(), 2,
          [seconds](benchmark::State& state, int threads) {
            idle_body<Runtime>(state, threads, seconds);
          })
          ->Iterations(1);
    }
  }
  if constexpr (requires { Runtime::kWakesTeams; }) {
    add_latency("wake-team", [](int threads) {
      return start_team(runtime({.threads = threads}), kWakeSamples, kWakeGapNs);
    });
  }
  if constexpr (requires { Runtime::kHasFutex; }) {
    add_latency("wake-futex", [](int) { return futex(kWakeSamples, kWakeGapNs); });
  }
}

}  // namespace
}  // namespace atl::perf

int main(int count, char** arguments) {
  benchmark::AddCustomContext("runtime", atl::perf::Backend::kName);
  atl::perf::add_all<atl::perf::Backend>();
  benchmark::Initialize(&count, arguments);
  if (benchmark::ReportUnrecognizedArguments(count, arguments)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  atl::perf::made().runtime.reset();  // while its thread's thread-local data still exist
  benchmark::Shutdown();
  return 0;
}
