// Threads that stay on their CPUs, a barrier between them, and the record of where they were.
//
// Team team({4, 5}, limits.budget_ns);
// team.run([&](std::size_t rank) { ...; team.barrier(); ... });   // rank r runs on cpus[r]
//
// A thread starts on its CPU, so its stack is touched there. Nothing waits for ever: a thread
// that throws, or a run that takes much longer than its budget, makes barrier() and check() throw
// in the others, and run() throws a Fault. A thread that gets no time at all (a real-time task
// has its CPU) cannot even be ended: then the process says so and exits (kExitStuck).
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <vector>

namespace atl::probe {

inline constexpr int kExitStuck = 3;

struct ThreadRecord {
  pid_t tid = 0;
  int cpu = 0;
  int seen_begin = -1;
  int seen_end = -1;
  std::int64_t involuntary = 0;  // context switches that the thread did not ask for
};

// Fault (cpu) unless this process's mask has them all.
void require_cpus(const std::vector<int>& cpus);

class Team {
 public:
  // Fault (cpu) for a CPU that is outside this process's mask. run() gives up after 10 s, ten times
  // the budget and 10 ns for each of the bytes that the bodies first touch.
  Team(std::vector<int> cpus, std::int64_t budget_ns, std::size_t bytes = 0);
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  // Runs body(rank) on every CPU; returns when all are through. Throws what the first body threw.
  void run(const std::function<void(std::size_t rank)>& body);

  // For the threads of run() alone: returns when all of them are there. Spins, so that they leave
  // within a line's flight; sleeps where the last is late by more than about a millisecond.
  void barrier();

  // For waits of a kernel's own, after a while of spinning in vain. check() throws when the run was
  // given up. nap() also sleeps for 50 µs: two that spin in turns, each while the other's CPU is
  // with somebody else, get on no further, but one who has slept is let in when the other is.
  void check() const;
  void nap() const;
  [[nodiscard]] bool stopped() const { return stop_.load(std::memory_order_relaxed); }

  [[nodiscard]] std::size_t size() const { return cpus_.size(); }
  // Of the last run; involuntary switches of all runs.
  [[nodiscard]] const std::vector<ThreadRecord>& records() const { return records_; }

 private:
  struct Start;
  static void* enter(void* start);
  void live(std::size_t rank, const std::function<void(std::size_t)>& body);
  void fail(std::exception_ptr fault);
  void await(int ended_event);

  std::vector<int> cpus_;
  std::vector<ThreadRecord> records_;
  std::int64_t limit_ns_;
  std::mutex mutex_;
  std::exception_ptr fault_;  // guarded by mutex_
  // Each on a line of its own: stop_ is read in loops that are timed.
  alignas(128) std::atomic<bool> stop_{false};
  alignas(128) std::atomic<std::size_t> arrived_{0};
  alignas(128) std::atomic<unsigned> phase_{0};
  alignas(128) std::atomic<std::size_t> ended_{0};
};

}  // namespace atl::probe
