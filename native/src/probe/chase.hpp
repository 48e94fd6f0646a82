// `chase`: the latency of a load, by one CPU over a working set on a node (chase_kernels.hpp).
//
// The CPU that chases writes the lines, so it touches them first where no node is asked for, and
// brings the caches into the state that a whole round leaves. Samples follow one another on the
// walk, so no sample finds in a cache what the one before has just read.
#pragma once

#include "protocol.hpp"

namespace atl::probe {

Json chase(const Request& request);

}  // namespace atl::probe
