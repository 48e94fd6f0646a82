// How a Runtime is set up.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "atoll/runtime/controller.hpp"
#include "atoll/runtime/places.hpp"

namespace atl {

// Stacks of tasks that suspend.
struct StackOptions {
  enum class Kind {
    guarded,  // a guard at both ends: an overflow ends in a message
    slab,     // no guards but canaries, looked at when the task suspends: for huge counts of tasks
              // on kernels before 6.13, where a guard costs one of 65530 mappings
  };
  Kind kind = Kind::guarded;
  // Of address space for one stack, rounded up to whole pages; memory is what was touched, by the
  // page. 256 KiB: enough for printf, regular expressions and a query engine's operators with room
  // to spare, and a million take 244 GiB of the 128 TiB that there are.
  std::size_t bytes = std::size_t{256} << 10;
};

// The fills of a worker's core so far, for users who count them better than the runtime can; from
// the governor's thread.
using FillReader = std::function<Fills(int worker)>;

struct RuntimeOptions {
  int workers = 0;                    // 0: one per core
  std::optional<Places> places = {};  // none: places_here()
  bool pin = true;                    // bind workers to their cores, their memory to its node
  // Over how many chiplets the workers are spread: a name (controller.hpp). Matters where there
  // are fewer workers than cores; then it is the workers that move.
  std::string approach = std::string(kDefaultApproach);
  std::shared_ptr<Approach> own_approach = {};  // the user's, instead of a named one
  std::chrono::milliseconds interval{100};      // between two decisions
  FillReader fills = {};                        // instead of the CPU's counters
  FillLatency latency = {};                     // what fills cost here, where it is known
  std::optional<std::uint64_t> working_set_bytes = {};  // for 'cache-size-centric'
  StackOptions stacks = {};
  // What is profiled (profile.hpp). Fills: by the CPU's counters, where perf_event_open allows it.
  // L3: by resctrl, with a monitoring group of its own while the runtime lives, where that may be
  // made. A trace keeps the last so many events of each worker, 16 bytes each.
  bool count_fills = true;
  bool count_l3 = false;
  std::size_t trace_events = 0;
};

}  // namespace atl
