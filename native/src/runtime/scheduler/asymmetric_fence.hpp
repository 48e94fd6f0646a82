// A pair of fences, one nearly free and one dear, for a side that runs often and one that runs
// seldom (Dice, Huang and Yang, "Asymmetric Dekker Synchronization", 2001; Linux membarrier(2)).
//
// With membarrier, light_fence() only keeps the compiler from reordering, and heavy_fence() makes
// the kernel run a full barrier on every CPU that runs a thread of this process.
// Without it (before Linux 4.14, or under a seccomp filter), both are seq_cst fences.
#pragma once

#include "atoll/runtime/asymmetric_fence.hpp"

namespace atl::runtime {

// Finds out which of the two it is; the first call counts. To be called before the first thread
// that uses a fence is started. A child of fork() keeps what the parent registered.
void choose_fences();

// The counterpart of detail::light_fence().
void heavy_fence();

}  // namespace atl::runtime
