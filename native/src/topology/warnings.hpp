// What is implausible about a machine. Nothing here refuses it. Pure.
#pragma once

#include "model.hpp"

namespace atl::topology {

// Needs everything else of the machine, chiplets included. The codes stand in
// atoll/topology.hpp.
std::vector<Notice> find_implausible(const Machine& machine);

}  // namespace atl::topology
