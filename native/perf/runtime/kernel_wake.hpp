// The time from the creation of a task until another thread starts it. The forking thread spins
// until then, so the other thread must run it. With a gap of 2 us between samples the other thread
// still searches: this measures a steal. With 500 us it has parked: this measures a wake-up. For
// comparison: a bare futex, and the start of OpenMP's parallel regions, which wakes threads sooner.
//
// Latencies in ns, each with one reading of the clock.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <thread>
#include <vector>

#include "backend.hpp"
#include "measure.hpp"

namespace atl::perf {

inline std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch())
      .count();
}

inline void spin_for(std::int64_t ns) {
  const std::int64_t until = now_ns() + ns;
  while (now_ns() < until) relax();
}

// No result if a sample ran on the thread that forked it.
using Latencies = std::optional<std::vector<double>>;

template <class Runtime>
Latencies fork_to_other(std::size_t samples, std::int64_t gap_ns) {
  std::vector<double> found;
  found.reserve(samples);
  for (std::size_t i = 0; i < samples; ++i) {
    spin_for(gap_ns);
    const pid_t here = gettid();  // read again, because a join can change the thread
    std::atomic<std::int64_t> begun_ns = 0;
    pid_t there = 0;
    typename Runtime::Children children;
    const std::int64_t forked_ns = now_ns();
    children.fork([&begun_ns, &there] {
      const std::int64_t begun = now_ns();
      there = gettid();
      begun_ns.store(begun, std::memory_order_release);
    });
    while (begun_ns.load(std::memory_order_acquire) == 0) relax();
    children.join();
    if (there == here) return std::nullopt;
    found.push_back(static_cast<double>(begun_ns.load() - forked_ns));
  }
  return found;
}

// The start of a team's second thread.
template <class Runtime>
Latencies start_team(Runtime& runtime, std::size_t samples, std::int64_t gap_ns) {
  std::vector<double> found;
  found.reserve(samples);
  for (std::size_t i = 0; i < samples; ++i) {
    spin_for(gap_ns);
    std::int64_t begun_ns = 0;
    const std::int64_t forked_ns = now_ns();
    runtime.team([&begun_ns](int rank) {
      if (rank == 1) begun_ns = now_ns();
    });
    if (begun_ns == 0) return std::nullopt;
    found.push_back(static_cast<double>(begun_ns - forked_ns));
  }
  return found;
}

// An empty run of a thread that is no worker.
template <class Runtime>
Latencies run_nothing(Runtime& runtime, std::size_t samples, std::int64_t gap_ns) {
  std::vector<double> found;
  found.reserve(samples);
  for (std::size_t i = 0; i < samples; ++i) {
    spin_for(gap_ns);
    const std::int64_t begun_ns = now_ns();
    runtime.run([] {});
    found.push_back(static_cast<double>(now_ns() - begun_ns));
  }
  return found;
}

// One thread waits for a word to change, another one changes it.
inline Latencies futex(std::size_t samples, std::int64_t gap_ns) {
  static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t));
  std::atomic<std::uint32_t> word = 0;
  std::atomic<std::int64_t> begun_ns = 0;
  std::jthread sleeper([&word, &begun_ns, samples] {
    for (std::uint32_t seen = 0; seen != samples; ++seen) {
      while (word.load(std::memory_order_acquire) == seen) {
        syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, seen, nullptr, nullptr, 0);
      }
      begun_ns.store(now_ns(), std::memory_order_release);
    }
  });
  std::vector<double> found;
  found.reserve(samples);
  for (std::size_t i = 0; i < samples; ++i) {
    spin_for(gap_ns);
    begun_ns.store(0, std::memory_order_relaxed);
    const std::int64_t forked_ns = now_ns();
    word.fetch_add(1, std::memory_order_release);
    syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
    std::int64_t begun = 0;
    while ((begun = begun_ns.load(std::memory_order_acquire)) == 0) relax();
    found.push_back(static_cast<double>(begun - forked_ns));
  }
  return found;
}

}  // namespace atl::perf
