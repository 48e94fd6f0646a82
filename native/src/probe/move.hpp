// `move`: bandwidth by threads that read, write, copy, scale, add or triad (move_kernels.hpp).
//
// Each thread owns one part of every array, which it touches first. A sample is as many passes as
// take kMoveSampleNs or longer, from the first thread's begin to the last one's end, so the clock
// and the barrier between samples cost nothing even for a set that sits in L1. Afterwards every
// element is compared with its closed form, as STREAM does with its means.
#pragma once

#include "protocol.hpp"

namespace atl::probe {

// With `run_ns` it goes on until then, whether settled or not.
Json move(const Request& request);

}  // namespace atl::probe
