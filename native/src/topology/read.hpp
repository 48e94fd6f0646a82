// Converts hwloc's objects to a Machine. Throws Fault if objects contradict each other.
#pragma once

#include <hwloc.h>

#include "model.hpp"

namespace atl::topology {

// Fills in everything except summary, chiplets, warnings and the values that hwloc does not know
// (system.hpp). `topology` was loaded with disallowed objects included.
Machine read_machine(hwloc_topology_t topology, const std::string& subject);

// Returns hwloc's counts. `topology` was loaded the way hwloc's tools load it.
Summary count_objects(hwloc_topology_t topology);

}  // namespace atl::topology
