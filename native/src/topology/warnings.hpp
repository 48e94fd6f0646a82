// Warns about implausible values of a machine, without rejecting it. Pure.
#pragma once

#include "model.hpp"

namespace atl::topology {

// Needs all other fields of the machine, including the chiplets. atoll/topology.hpp lists the
// codes.
std::vector<Notice> find_implausible(const Machine& machine);

}  // namespace atl::topology
