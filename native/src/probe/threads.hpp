// Threads bound to CPUs, with a barrier and a record of where they ran.
//
// Team team({4, 5}, limits.budget_ns);
// team.run([&](std::size_t rank) { ...; team.barrier(); ... });   // rank r runs on cpus[r]
//
// A thread starts on its CPU, so its stack is touched there. No wait is unbounded: if a thread
// throws, or a run takes much longer than its budget, barrier() and check() throw in the other
// threads, and run() throws a Fault. A thread that gets no CPU time at all (because a real-time
// task has its CPU) cannot be ended: then the process reports it and exits (kExitStuck).
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
  std::int64_t involuntary = 0;  // involuntary context switches
};

// Throws Fault (cpu) unless this process's mask includes them all.
void require_cpus(const std::vector<int>& cpus);

class Team {
 public:
  // Throws Fault (cpu) for a CPU outside this process's mask. The limit of run() is 10 s plus ten
  // times the budget plus 10 ns for each byte that the bodies touch first.
  Team(std::vector<int> cpus, std::int64_t budget_ns, std::size_t bytes = 0);
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  // Runs body(rank) on every CPU and returns when all have finished. Rethrows the first exception.
  void run(const std::function<void(std::size_t rank)>& body);

  // Only for the threads of run(): returns when all have arrived. Spins, so that the threads leave
  // at nearly the same time; sleeps if the last one is more than about a millisecond late.
  void barrier();

  // For a kernel's own waits, after spinning in vain for a while. check() throws if the run was
  // aborted. nap() also sleeps for 50 µs: two threads that share their CPUs with others and spin in
  // turns can block each other, but a thread that has slept runs as soon as the other does.
  void check() const;
  void nap() const;
  [[nodiscard]] bool stopped() const { return stop_.load(std::memory_order_relaxed); }

  [[nodiscard]] std::size_t size() const { return cpus_.size(); }
  // The record of the last run, but with the involuntary switches of all runs.
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
  // On separate cache lines, because timed loops read stop_.
  alignas(128) std::atomic<bool> stop_{false};
  alignas(128) std::atomic<std::size_t> arrived_{0};
  alignas(128) std::atomic<unsigned> phase_{0};
  alignas(128) std::atomic<std::size_t> ended_{0};
};

}  // namespace atl::probe
