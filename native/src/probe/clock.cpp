#include "clock.hpp"

#if defined(__x86_64__)
#include <cpuid.h>

#include <fstream>
#include <string>
#endif

namespace atl::probe {

namespace {

#if defined(__x86_64__)
// Whether the kernel has abandoned the TSC because it differs between CPUs. Some kernels measure
// from one thread's start to another's end. A kernel without this file (gVisor) has not.
bool tsc_is_unstable() {
  std::ifstream file("/sys/devices/system/clocksource/clocksource0/available_clocksource");
  std::string name;
  bool any = false;
  while (file >> name) {
    if (name == "tsc") return false;
    any = true;
  }
  return any;
}

Clock best_clock() {
  // Leaf 0x80000007, EDX bit 8: the TSC has the same rate in every state of the CPU. Emulated
  // CPUs do not set it, and the rate of their TSC varies with the host's load.
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  const bool told = __get_cpuid(0x80000007, &eax, &ebx, &ecx, &edx) != 0;
  const bool constant = told && (edx & (1U << 8)) != 0;
  return constant && !tsc_is_unstable() ? Clock::kTsc : Clock::kMonotonic;
}
#elif defined(__aarch64__)
Clock best_clock() { return Clock::kCntvct; }
#else
Clock best_clock() { return Clock::kMonotonic; }
#endif

#if defined(__aarch64__)
double measure_tick_ns() {
  std::uint64_t hertz = 0;
  asm volatile("mrs %0, cntfrq_el0" : "=r"(hertz));
  return 1e9 / static_cast<double>(hertz);
}
#else
struct Instant {
  std::int64_t ns;
  std::uint64_t ticks;
};

// Reads both clocks at one time: of several tries, the one with the least time between readings.
Instant read_both() {
  Instant best{};
  std::uint64_t narrowest = ~std::uint64_t{0};
  for (int i = 0; i < 8; ++i) {
    const std::uint64_t before = ticks();
    const std::int64_t ns = now_ns();
    const std::uint64_t after = ticks();
    if (after - before < narrowest) {
      narrowest = after - before;
      best = {ns, before + narrowest / 2};
    }
  }
  return best;
}

double measure_tick_ns() {
  if (kClock == Clock::kMonotonic) return 1.0;
  const Instant begin = read_both();
  const timespec pause{.tv_sec = 0, .tv_nsec = 10'000'000};
  nanosleep(&pause, nullptr);
  const Instant end = read_both();
  return static_cast<double>(end.ns - begin.ns) / static_cast<double>(end.ticks - begin.ticks);
}
#endif

}  // namespace

const Clock kClock = best_clock();

double tick_ns() {
  static const double measured = measure_tick_ns();
  return measured;
}

const char* clock_name() {
  switch (kClock) {
    case Clock::kTsc: return "tsc";
    case Clock::kCntvct: return "cntvct";
    case Clock::kMonotonic: break;
  }
  return "monotonic";
}

}  // namespace atl::probe
