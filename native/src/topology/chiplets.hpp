// Finds chiplets from the machine's L3 domains, dies and sub-NUMA nodes.
//
// A chiplet is a set of at least two cores, smaller than its package, that share the fastest
// path to each other (Fogli et al., "OLAP on Modern Chiplet-Based Processors", PVLDB 17, 2024).
// Pure.
#pragma once

#include "model.hpp"

namespace atl::topology {

// Returns chiplets in the order of their first cores. Reads packages, dies, nodes, l3 and cores.
std::vector<Chiplet> find_chiplets(const Machine& machine);

}  // namespace atl::topology
