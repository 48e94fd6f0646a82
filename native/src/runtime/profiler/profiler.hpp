// The profiler of a runtime: a recorder for each worker, counters of fills if there are any (the
// hardware's, or those of simulated caches), samples over time, and the results for users: profiles
// and traces.
//
// Costs: see recorder.hpp. The caller pays for `sample` and `snapshot`; workers only notice that
// the cache lines of their counters are read.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "atoll/runtime/controller.hpp"
#include "atoll/runtime/profile.hpp"
#include "board_fills.hpp"
#include "recorder.hpp"
#include "resctrl.hpp"
#include "trace_json.hpp"

namespace atl::runtime {

struct ProfilerOptions {
  std::size_t trace_events = 0;  // kept for each worker, 16 bytes each; 0: no trace
  bool fills = true;             // count them if possible
  bool l3 = false;               // read resctrl, which may want a monitoring group of its own
  std::string mountinfo = {};    // the file that names the place of resctrl
  // The folder of PCI devices among which is the board of simulated caches, if there are any, and
  // the places that it has to agree with. Empty: none is looked for.
  std::string devices = {};
  const Places* places = nullptr;
};

class Profiler {
 public:
  // `counts[w]` of worker w must live as long as this.
  Profiler(std::span<WorkerCounts* const> counts, const ProfilerOptions& options);
  Profiler(const Profiler&) = delete;
  Profiler& operator=(const Profiler&) = delete;
  ~Profiler();

  [[nodiscard]] Recorder& recorder(int worker) { return workers_[index(worker)]->recorder; }

  // The worker's own thread calls each once, first and last. `detach` keeps the counts.
  void attach(int worker);
  void detach(int worker);
  // Null: the fills are not simulated. It wants to know where the workers are bound.
  [[nodiscard]] BoardFills* board() const { return board_.get(); }

  // Any thread, at any time -----------------------------------------------------------------------

  // Records each worker's counters for the trace's counter tracks. Call it at an interval of 10 ms
  // or more: a system call or two per worker. Keeps the latest 65,536 records.
  void sample();
  [[nodiscard]] Profile snapshot() const;
  // Throws RuntimeFault if no trace was requested or the file cannot be written.
  void write_trace(const std::string& path) const;

  // What resctrl reports about each L3, if it counts the workers and nothing else; else empty. Some
  // reads of files per L3.
  [[nodiscard]] std::vector<L3Profile> l3_of_workers() const;
  // Fills of a worker so far, for the controller: subtract two of them. A system call or two.
  [[nodiscard]] FillCounts fills(int worker) const;

 private:
  struct Worker {
    Worker(int rank, WorkerCounts& own, std::size_t trace_events, std::int64_t origin_ns);
    const int rank;
    WorkerCounts& counts;
    std::unique_ptr<TraceRing> trace;
    Recorder recorder;
    mutable std::mutex mutex;  // of what follows; the worker itself takes it in attach and detach
    int tid = 0;
    bool attached = false;
    FillCounters counters;
    FillCounts last_fills;  // when it was detached
    ThreadUsage last_usage;
  };

  static std::size_t index(int worker) { return static_cast<std::size_t>(worker); }
  void find_board(const ProfilerOptions& options);
  [[nodiscard]] FillCounts fills_of(const Worker& worker) const;
  [[nodiscard]] WorkerProfile profile_of(std::size_t index) const;
  void add_remarks(Profile& profile) const;

  ProfilerOptions options_;
  std::int64_t start_ns_;
  const FillTable* table_ = nullptr;
  std::unique_ptr<BoardFills> board_;  // null: the counters are the hardware's
  std::string no_board_;               // why there is a board but not for us
  std::vector<std::unique_ptr<Worker>> workers_;

  mutable std::mutex mutex_;     // of what follows
  std::string no_fills_;         // why there are no fills; empty: there are
  std::optional<L3Monitor> l3_;  // whether there is one never changes, and `read` needs no mutex
  std::deque<CounterSample> samples_;
};

// The fills of a controller's sample: the difference of two counts, all memory together.
[[nodiscard]] Fills controller_fills(const FillCounts& before, const FillCounts& now);

}  // namespace atl::runtime
