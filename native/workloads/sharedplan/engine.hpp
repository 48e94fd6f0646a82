// The plan at work: each operator is a loop that takes a cycle's rows from its inputs, works, and
// gives its own to its takers. Edges hold one cycle, so operators of a pipeline work on cycles in
// succession, and a new cycle begins when all scans can take it.
//
// A placed operator is a task of the runtime on the worker that is bound to its core; its memory,
// and that of the tables that it is the first to read, is on the core's node. With the deployment
// 'os' an operator is a thread that the system may move; tables are interleaved over the nodes.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "atoll/runtime.hpp"
#include "operators.hpp"
#include "placement.hpp"

namespace atl::sharedplan {

inline constexpr std::chrono::milliseconds kWindow{100};  // of the meters

// Lets the calling thread run on these CPUs only; empty: no change.
void allow_cpus(const std::vector<int>& cpus);

// Throws std::runtime_error, which says what to do.
[[nodiscard]] std::thread start_thread(std::function<void()> body);

// What an operator has used.
struct Usage {
  std::uint64_t in_bytes = 0, out_bytes = 0, table_bytes = 0;
  std::uint64_t own_bytes = 0;  // at most, in a cycle
  std::map<int, double> cpu_s_by_cpu;
  std::map<std::int64_t, double> cpu_s_by_window;  // since the engine began: 0, 1, ...
};

class Meter {
 public:
  // Some work from `begin` to `end` after the engine began.
  void add(Clock::duration begin, Clock::duration end, double cpu_s, int cpu, const Usage& more);
  // Since the last call.
  [[nodiscard]] Usage take();

 private:
  std::mutex mutex_;
  Usage usage_;
};

class Engine {
 public:
  // Makes the tables and starts the operators. Throws RuntimeFault, or as `start_thread`.
  Engine(double scale, std::uint64_t seed, const Placement& placement, const Places& here);
  ~Engine();

  [[nodiscard]] const Tables& tables() const { return *tables_; }

  // Waits until all scans take the cycle. Not from two threads at once. Throws as `check`.
  void begin(const std::shared_ptr<const Cycle>& cycle);
  // Throws what an operator has thrown.
  void check();
  // One cycle of these queries; waits for all answers.
  void run(const std::vector<std::shared_ptr<Query>>& queries);

  struct Station {
    const Spec* spec;
    std::unique_ptr<BatchPool> pool;
    Made made;
    std::vector<std::unique_ptr<Channel<BatchPointer>>> inputs;
    std::vector<Channel<BatchPointer>*> takers;
    Meter meter;
    std::atomic<int> tid = 0;  // of the thread or worker that it runs on; 0: not yet
  };
  // In the plan's order.
  [[nodiscard]] const std::vector<std::unique_ptr<Station>>& stations() const { return stations_; }
  [[nodiscard]] Clock::time_point began() const { return began_; }

  std::atomic<bool> watched = false;  // else meters rest, since nobody takes what they count

 private:
  Engine() = default;
  void serve(Station& station);
  void close();

  Clock::time_point began_ = Clock::now();
  std::unique_ptr<Tables> tables_;
  std::vector<std::unique_ptr<Station>> stations_;
  std::mutex fault_mutex_;
  std::exception_ptr fault_;
  std::unique_ptr<BatchPool> beginnings_;
  std::unique_ptr<Runtime> runtime_;
  std::vector<Task<void>> tasks_;
  std::vector<std::thread> threads_;
};

}  // namespace atl::sharedplan
