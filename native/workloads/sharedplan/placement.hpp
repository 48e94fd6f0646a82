// Where operators run: what an atoll/placement file says.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "atoll/runtime/places.hpp"
#include "plan.hpp"

namespace atl::sharedplan {

// The core with this CPU, or null.
[[nodiscard]] const Core* core_of(const Places& here, int cpu);

struct Placement {
  std::string deployment = "os";
  std::vector<int> cpus = {};    // that operators may use; empty: all of the process
  std::vector<int> cpu_of = {};  // of each operator of the plan; empty: the system places them
};

// Throws UsageFault: not a placement, an operator is unknown, missing, named twice or divided, a
// CPU is not among `here`, or units are on different CPUs of one core.
[[nodiscard]] Placement parse_placement(const std::string& json, std::span<const Spec> plan,
                                        const Places& here);

}  // namespace atl::sharedplan
