// `vector`: threads that write or read one vector, each its own chunk, again and again.
//
// The experiment of arcas-runtime 2.3 (its figure 5): n threads on as few chiplets as hold them
// (LocalCache) against the same n spread evenly (DistributedCache), for vectors from 38 bytes to
// the limit of memory, 1,000 iterations. An iteration ends at a barrier, as a parallel loop does,
// and its time holds the barrier: for a vector of a few lines that is nearly all of it, and what a
// program would feel. Iterations of little time are taken together in one sample.
#pragma once

#include "protocol.hpp"

namespace atl::probe {

Json vector(const Request& request);

}  // namespace atl::probe
