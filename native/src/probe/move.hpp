// `move`: the bandwidth of threads that read, write, copy, scale, add or triad (move_kernels.hpp).
//
// Each thread owns one part of every array and touches it first. A sample has enough passes to
// take kMoveSampleNs or longer, from the first thread's start to the last one's end, so that the
// clock and the barrier between samples cost nothing even for a set that fits L1. Afterwards every
// element is compared with its closed form, as STREAM does with its means.
#pragma once

#include "protocol.hpp"

namespace atl::probe {

// With `run_ns` it samples until that time, whether settled or not.
Json move(const Request& request);

}  // namespace atl::probe
