// hwloc's objects as a Machine. Objects that contradict each other are a Fault.
#pragma once

#include <hwloc.h>

#include "model.hpp"

namespace atl::topology {

// Everything but summary, chiplets, warnings and what hwloc does not know (system.hpp).
// `topology` was loaded whole.
Machine read_machine(hwloc_topology_t topology, const std::string& subject);

// hwloc's counts. `topology` was loaded as hwloc's tools do.
Summary count_objects(hwloc_topology_t topology);

}  // namespace atl::topology
