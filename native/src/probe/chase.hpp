// `chase`: the load latency of one CPU over a working set on a node (chase_kernels.hpp).
//
// The chasing CPU writes the lines, so it touches them first if the request names no node, and it
// brings the caches into the state that a whole round leaves. Consecutive samples continue the
// walk, so no sample finds in a cache what the previous one has just read.
#pragma once

#include "protocol.hpp"

namespace atl::probe {

Json chase(const Request& request);

}  // namespace atl::probe
