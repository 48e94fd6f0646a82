// A group of tasks: some of a runtime's workers, with a spread of their own.
//
//   atl::Group query(runtime, {.threads = 8});
//   query.run([&] { join(left, right); });
//
// At most `threads` workers run its tasks. The spread is the number of chiplets that these workers
// use (mapping.hpp). The group's approach decides it again in each interval (controller.hpp). What
// its tasks fork and spawn also belongs to the group, unless it names a place.
//
// Promises
//  - A task of the group runs on one of its workers. When the spread changes, new tasks go to the
//    new workers at once; a running task stays where it is until it suspends or yields.
//  - The destructor waits for the group's tasks. In one of them it ends the program with a message.
//  - To make a group and to end it takes less than a microsecond if nothing else runs, so one for
//    each query is natural. It is O(cores) for the first group of as many threads since the workers
//    have moved, and with `remember_as` O(workers) more.
#pragma once

#include <concepts>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "atoll/runtime/runtime.hpp"

namespace atl {

struct GroupOptions {
  int threads = 0;  // at most; 0: all workers of the runtime
  std::string approach = std::string(kDefaultApproach);
  std::shared_ptr<Approach> own_approach = {};          // your own, instead of a named one
  std::optional<std::uint64_t> working_set_bytes = {};  // for 'cache-size-centric'; none: measured
  int spread = 0;                                       // to begin with; 0: the approach chooses
  int min_chiplets = 0;  // the spread stays between these while the workers' seats allow it
  int max_chiplets = 0;  // 0: no limit
  // The runtime remembers what the approach has found out under this name, for example a query's
  // text: the next group with the name begins there and goes on. For 'adaptive' and 'switchback'.
  // The first of a name begins with `spread`, or else as wide as possible. A group beside which
  // others took more than a tenth of its CPU time does not show how good its spread was. Groups of
  // one name that exist at the same time share one approach, which takes them for one.
  std::string remember_as = {};
};

class ATOLL_EXPORT Group {
 public:
  // Throws RuntimeFault if it has more threads than workers, the approach is unknown, or options
  // contradict each other or the machine. The runtime must outlive the group.
  explicit Group(Runtime& runtime, const GroupOptions& options = {});
  ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  template <detail::Startable F>
  [[nodiscard]] auto spawn(F&& function) {
    return runtime_.spawn(place(), std::forward<F>(function));
  }
  template <detail::Startable F>
  decltype(auto) run(F&& function) {
    return spawn(std::forward<F>(function)).join();
  }

  // all_do (all_do.hpp) on the group's workers, from any thread.
  template <detail::ForAll F>
  void all_do(F&& function) {
    run([&] { atl::all_do(place(), function); });
  }

  // The place of the group, for spawn and call.
  Place place() const;
  // The ranks of the workers that may run its tasks now.
  std::vector<int> workers() const;
  int spread() const;
  // Fixes the spread and stops using the approach. Throws RuntimeFault if it is out of bounds.
  void set_spread(int spread);
  // The reason for the spread, in words.
  std::string reason() const;

 private:
  struct State;
  Runtime& runtime_;
  std::unique_ptr<State> state_;
};

}  // namespace atl
