// Time for short loops: the time-stamp counter where its rate is constant and the CPUs agree on it,
// else CLOCK_MONOTONIC.
//
// ticks() is ordered against the loads around it, so that a loop is neither begun nor ended
// outside of its two readings (Intel SDM, RDTSC: LFENCE before; after it likewise).
#pragma once

#include <cstdint>
#include <ctime>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace atl::probe {

enum class Clock { kTsc, kCntvct, kMonotonic };

// The best that this CPU has. Found once.
extern const Clock kClock;

// Comparable between processes of this machine.
inline std::int64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

inline std::uint64_t ticks() {
#if defined(__x86_64__)
  if (kClock == Clock::kTsc) {
    _mm_lfence();
    const std::uint64_t value = __rdtsc();
    _mm_lfence();
    return value;
  }
#elif defined(__aarch64__)
  std::uint64_t value = 0;
  asm volatile("isb; mrs %0, cntvct_el0; isb" : "=r"(value)::"memory");
  return value;
#endif
  return static_cast<std::uint64_t>(now_ns());
}

// One tick in ns. The first call takes 10 ms where the rate has to be measured.
double tick_ns();

const char* clock_name();

// A pause between two looks at a line that another thread will write.
inline void relax() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace atl::probe
