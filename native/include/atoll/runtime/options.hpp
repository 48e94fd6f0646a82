// How a Runtime is set up.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "atoll/runtime/controller.hpp"
#include "atoll/runtime/places.hpp"
#include "atoll/runtime/stack_options.hpp"

namespace atl {

// The fills of a worker's core so far, for users who count them better than the runtime can; from
// the governor's thread.
using FillReader = std::function<Fills(int worker)>;

// Where a worker sits.
struct Seat {
  int core = 0;           // an index of places().cores
  std::vector<int> cpus;  // what its thread is bound to, where workers are bound
};

// Workers for somebody else's tasks: an engine's, that has a queue of its own. They are seated,
// moved and profiled like others; such a runtime runs no tasks itself (`run` and `spawn` throw).
struct LentWorkers {
  // What each worker does instead of looking for tasks: once, by its own thread, on that thread's
  // own stack. Throws nothing. Who destroys the runtime sees to it that it returns.
  std::function<void(int worker)> work;
  // Whether any of it does something now: while so the governor looks once an interval, else less
  // and less often (see Runtime::look). By the governor's thread.
  std::function<bool()> busy;
  // Workers sit anew; by rank. By whoever moved them; must not call the runtime. Also once before
  // the constructor returns.
  std::function<void(std::span<const Seat> seats)> placed;
  // Bound to the chiplets of their cores, not to the cores themselves: they keep their L3, and the
  // kernel lets them evade whatever else runs on a core.
  bool share_chiplets = false;
};

struct RuntimeOptions {
  int workers = 0;                    // 0: one per core; at most 32768
  std::optional<Places> places = {};  // none: places_here()
  bool pin = true;                    // bind workers to their cores, their memory to its node
  // Over how many chiplets the workers are spread: a name (controller.hpp). Matters where there
  // are fewer workers than cores; then it is the workers that move.
  std::string approach = std::string(kDefaultApproach);
  std::shared_ptr<Approach> own_approach = {};          // the user's, instead of a named one
  std::chrono::milliseconds interval{100};              // between two decisions; at least 1
  FillReader fills = {};                                // instead of the CPU's counters
  FillLatency latency = {};                             // what fills cost here, where it is known
  std::optional<std::uint64_t> working_set_bytes = {};  // for 'cache-size-centric'
  std::optional<LentWorkers> lent = {};
  StackOptions stacks = {};
  // What is profiled (profile.hpp). Fills: by the CPU's counters, where perf_event_open allows it.
  // L3: by resctrl, with a monitoring group of its own while the runtime lives, where that may be
  // made. A trace keeps the last so many events of each worker, 16 bytes each; at
  // most 2^30.
  bool count_fills = true;
  bool count_l3 = false;
  std::size_t trace_events = 0;
};

}  // namespace atl
