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

// Returns the fills of a worker's core so far, for users who can count them better than the
// runtime. The governor's thread calls it. If it throws, that is as if the approach did
// (controller.hpp).
using FillReader = std::function<Fills(int worker)>;

// Where a worker sits.
struct Seat {
  int core = 0;           // an index of places().cores
  std::vector<int> cpus;  // what its thread is bound to, where workers are bound
};

// Workers for the tasks of another engine that has its own queue. They are placed, moved and
// profiled like others; such a runtime runs no tasks itself (`run` and `spawn` throw).
struct LentWorkers {
  // What each worker does instead of looking for tasks. Each worker's thread calls it once, on its
  // own stack. Must not throw. Before the runtime is destroyed, its owner must make it return.
  std::function<void(int worker)> work;
  // Whether any of them is busy: if so, the governor looks once an interval, otherwise less and
  // less often (see Runtime::look). The governor's thread calls it. Must not throw.
  std::function<bool()> busy;
  // Called with the new seats, by rank, after workers moved, by the thread that moved them, and
  // once before the constructor returns. Must not call the runtime, nor throw.
  std::function<void(std::span<const Seat> seats)> placed;
  // Binds workers to the chiplets of their cores, not to the cores: they keep their L3, and the
  // kernel can move them away from whatever else runs on a core.
  bool share_chiplets = false;
};

struct RuntimeOptions {
  // At most 8192. 0: ATOLL_WORKERS of the environment, else one per core of the places; on this
  // machine not more than the cgroup's CPU quota, rounded up.
  int workers = 0;
  std::optional<Places> places = {};  // default: places_here()
  // Bind workers to their cores, their memory to its node. Default: ATOLL_PIN (0 or 1), else true.
  std::optional<bool> pin = {};
  // How many chiplets the workers use, by the name of an approach (controller.hpp). Matters if
  // there are fewer workers than cores; then the workers move. Default: ATOLL_APPROACH of the
  // environment, else kDefaultApproach.
  std::string approach = {};
  std::shared_ptr<Approach> own_approach = {};  // your own, instead of a named one
  std::chrono::milliseconds interval{100};      // between two decisions; at least 1
  FillReader fills = {};                        // instead of the CPU's counters
  // What fills cost here. Default: between chiplets and nodes the mean of what the places' profile
  // says (Places::level_ns), for the rest, and without a profile, FillLatency's own.
  std::optional<FillLatency> latency = {};
  std::optional<std::uint64_t> working_set_bytes = {};  // for 'cache-size-centric'; none: measured
  std::optional<LentWorkers> lent = {};
  StackOptions stacks = {};
  // What to profile (profile.hpp). Fills come from the CPU's counters, if perf_event_open allows
  // it. L3 use comes from resctrl, through a monitoring group that lasts as long as the runtime, if
  // it can be created. A trace keeps the last `trace_events` events of each worker, 16 bytes each;
  // at most 2^30.
  bool count_fills = true;
  bool count_l3 = false;
  std::size_t trace_events = 0;
};

}  // namespace atl
