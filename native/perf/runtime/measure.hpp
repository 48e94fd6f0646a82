// What every kernel counts in addition to its time: CPU time over threads x wall time, and how much
// of the machine other programs used. perf/runtime.py accepts a run by these two figures: a run
// that lost its CPUs is off by up to 13 times.
#pragma once

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace atl::perf {

using Clock = std::chrono::steady_clock;

inline double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// CPU-seconds of all threads of this process.
double own_cpu_s();

// The peak of this process (VmHWM).
double peak_resident_bytes();

// Lets a spinning CPU's sibling run.
inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Measures from its construction to `report`.
class Meter {
 public:
  explicit Meter(int threads);
  // The time is divided by `items` per iteration.
  void report(benchmark::State& state, double items) const;

 private:
  struct Machine {
    double busy_s = 0;
    double all_s = 0;
  };
  static Machine machine();

  int threads_;
  Machine machine_;
  double cpu_s_;
  Clock::time_point begin_;
};

// Adds latency quantiles as counters p50_ns, p99_ns, p999_ns; sorts its argument.
void report_quantiles(benchmark::State& state, std::vector<double>& ns);

// Rejects the time of a kernel with a wrong answer.
inline void expect(benchmark::State& state, bool right, const std::string& what) {
  if (!right) state.SkipWithError(("wrong answer: " + what).c_str());
}

}  // namespace atl::perf
