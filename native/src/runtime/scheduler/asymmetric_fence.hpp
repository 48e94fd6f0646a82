// A pair of fences, one almost free and one expensive, for a side that runs often and one that runs
// rarely (Dice, Huang and Yang, "Asymmetric Dekker Synchronization", 2001; Linux membarrier(2)).
//
// With membarrier, light_fence() only keeps the compiler from reordering, and heavy_fence() makes
// the kernel run a full barrier on every CPU that runs a thread of this process.
// Without it (before Linux 4.14, or under a seccomp filter), both are seq_cst fences.
#pragma once

#include "atoll/runtime/asymmetric_fence.hpp"

namespace atl::runtime {

// Finds out which of the two applies; the first call counts. Call it before starting the first
// thread that uses a fence. A child of fork() keeps what the parent registered.
void choose_fences();

// The counterpart of detail::light_fence().
void heavy_fence();

}  // namespace atl::runtime
