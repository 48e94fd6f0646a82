// A runtime: workers that sit on the cores of a machine, and the calls that give them tasks.
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
//  - Any number of threads may call `run` and `spawn` at the same time; inside a task, `run` is a
//    call. A thread that calls `run` takes the place of a worker that sleeps, if there is one, and
//    runs the function and what it leads to itself, where the thread is: it keeps its affinity.
//    What has a place runs on the workers' own threads all the same. A thread sleeps in `run` while
//    every worker is awake, or the one that is bound to its CPU, or while there is nothing else
//    that it may run. While the function waits, the thread runs any task without a place, also of
//    other callers, to its end or next wait, even if the function has ended meanwhile: do not hold
//    a lock that any task takes.
//  - The destructor waits for every spawned task, detached ones too, and ends the workers.
//  - A process may have several runtimes at the same time.
//  - After fork(), the child may only destroy the runtime and its groups.
#pragma once

#include <concepts>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "atoll/runtime/all_do.hpp"
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
  // Throws RuntimeFault if an option is invalid or not possible on this machine.
  explicit Runtime(const RuntimeOptions& options = {});
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  // Calls the function as a task and waits; returns its value or throws its exception. An empty one
  // takes some 150 ns and no system call while the workers sleep.
  template <detail::Startable F>
  decltype(auto) run(F&& function) {
    tag_of(Place{});  // first, so that it throws before anything is made
    return detail::started(detail::make_task(std::forward<F>(function)),
                           [this](auto* task) { run_here(task, task->completion); })
        .join();
  }

  template <detail::Startable F>
  [[nodiscard]] auto spawn(F&& function) {
    return spawn(Place{}, std::forward<F>(function));
  }

  template <detail::Startable F>
  [[nodiscard]] auto spawn(Place place, F&& function) {
    const detail::Word tag = tag_of(place);
    return detail::started(detail::make_task(std::forward<F>(function)),
                           [this, tag, place](detail::Job* job) { start(job, tag, place.urgent); });
  }

  // all_do (all_do.hpp), from any thread.
  template <detail::ForAll F>
  void all_do(Place place, F&& function) {
    run([&] { atl::all_do(place, function); });
  }
  template <detail::ForAll F>
  void all_do(F&& function) {
    all_do(Place{}, function);
  }

  int workers() const;
  const Places& places() const;
  // Where each worker sits now, by rank: an index of places().cores.
  std::vector<int> cores() const;
  // Which node each worker sits on now, for arrays (memory.hpp). Arrays that are partitioned by
  // worker follow the workers when these move.
  NodeMap node_map() const;
  // What each worker has counted so far, by rank.
  std::vector<Counts> counts() const;

  // Number of chiplets that the workers use, and the reason. For some of the workers: group.hpp.
  int spread() const;
  std::string reason() const;
  // Fixes the spread and stops using the approach. Throws RuntimeFault if it is out of bounds.
  void set_spread(int spread);

  // Asks the approach now, not at the end of the interval, and moves the workers. An approach that
  // judges by whole intervals (controller.hpp) is asked at the end of its interval all the same.
  void look();
  // Binds workers to their cores from now on, or lets them run wherever the process may.
  void set_pin(bool pin);

  // What the runtime did so far, per worker and code section (profile.hpp can write it to a file).
  // Takes the caller about 50 us a worker; the workers go on.
  Profile profile() const;
  // Writes the trace so far, for ui.perfetto.dev. Throws RuntimeFault if the runtime has no
  // trace_events or the file cannot be written.
  void write_trace(const std::string& path) const;

  runtime::Team& team() { return *team_; }  // internal, for group.hpp and similar

 private:
  detail::Word tag_of(Place place) const;
  void start(detail::Job* job, detail::Word tag, bool urgent);
  // Runs the task on the calling thread in the place of a worker that sleeps, or starts it.
  void run_here(detail::Job* job, const detail::Completion& end);

  std::unique_ptr<runtime::Team> team_;
};

}  // namespace atl
