// Time for short loops: the time-stamp counter if its rate is constant and the CPUs agree on it,
// otherwise CLOCK_MONOTONIC.
//
// ticks() is ordered with the surrounding loads, so that no part of a loop runs outside its two
// readings (Intel SDM, RDTSC: LFENCE before; the same after).
#pragma once

#include <cstdint>
#include <ctime>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace atl::probe {

enum class Clock { kTsc, kCntvct, kMonotonic };

// The best clock of this CPU, determined once.
extern const Clock kClock;

// Comparable between processes on this machine.
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

// One tick in ns. The first call takes 10 ms if the rate has to be measured.
double tick_ns();

const char* clock_name();

// A pause between two reads of a line that another thread will write.
inline void relax() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace atl::probe
