// A runtime: workers that sit on the cores of a machine, and the way in for other threads.
//
//   atl::Runtime runtime;                             // one worker per core
//   const long n = runtime.run([] { return fib(40); });
//
// After ARCAS (Fogli et al., arXiv 2503.11460, section 4): light tasks, stealing that stays on the
// chiplet first, threads placed by a spread rate. Everything inside `run` may fork, spawn, wait
// and yield (fork.hpp, scope.hpp, task.hpp, this_task.hpp).
//
// Promises
//  - The constructor returns when every worker sits on its core. Idle workers sleep.
//  - `run` and `spawn` may be called by any thread, by several at a time; `run` from inside a task
//    is a call. A thread that waits in `run` sleeps.
//  - The destructor waits for every spawned task, detached ones too, and ends the workers.
//  - Several runtimes may live side by side.
//  - After fork(), the child may destroy the runtime, nothing else.
#pragma once

#include <concepts>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "atoll/runtime/options.hpp"
#include "atoll/runtime/placed_memory.hpp"
#include "atoll/runtime/profile.hpp"
#include "atoll/runtime/task.hpp"

namespace atl {

namespace runtime {
class Team;
}

class ATOLL_EXPORT Runtime {
 public:
  // RuntimeFault: options that cannot be had.
  explicit Runtime(const RuntimeOptions& options = {});
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  // Calls the function as a task and waits for it; its value, or what it threw.
  template <std::invocable F>
  decltype(auto) run(F&& function) {
    return spawn(std::forward<F>(function)).join();
  }

  template <std::invocable F>
  [[nodiscard]] auto spawn(F&& function) {
    return spawn(Place{}, std::forward<F>(function));
  }

  template <std::invocable F>
  [[nodiscard]] auto spawn(Place place, F&& function) {
    const detail::Word tag = tag_of(place);
    return detail::started(detail::make_task(std::forward<F>(function)),
                           [this, tag](detail::Job* job) { start(job, tag); });
  }

  int workers() const;
  const Places& places() const;
  // Where each worker sits now, by rank: an index of places().cores.
  std::vector<int> cores() const;
  // Which node each worker sits on now, for arrays (memory.hpp). Those that are partitioned by
  // worker follow the workers when these move.
  NodeMap node_map() const;
  // What each worker has counted so far, by rank.
  std::vector<Counts> counts() const;

  // Over how many chiplets the workers are spread, and why; group.hpp for parts of them.
  int spread() const;
  std::string reason() const;
  // From now on it is this, and the approach is no longer asked. RuntimeFault: out of bounds.
  void set_spread(int spread);

  // Asks the approach before it returns and not at the end of the interval, and moves the workers.
  void look();
  // Whether workers are bound to their cores from now on, or may run wherever the process may.
  void set_pin(bool pin);

  // What it did so far, per worker and code section (profile.hpp: also as a file). Some 50 us a
  // worker for the caller; the workers go on.
  Profile profile() const;
  // The trace so far, for ui.perfetto.dev; of a runtime with trace_events. RuntimeFault: without,
  // or the file cannot be written.
  void write_trace(const std::string& path) const;

  runtime::Team& team() { return *team_; }  // the inside, for group.hpp and the like

 private:
  detail::Word tag_of(Place place) const;
  void start(detail::Job* job, detail::Word tag);

  std::unique_ptr<runtime::Team> team_;
};

}  // namespace atl
