// `vector`: threads that repeatedly write or read one vector, each thread its own chunk.
//
// The experiment of arcas-runtime 2.3 (its figure 5): n threads on as few chiplets as hold them
// (LocalCache) against the same n spread evenly (DistributedCache), for vectors from 38 bytes to
// the limit of memory, 1,000 iterations. An iteration ends with a barrier, like a parallel loop,
// and its time includes the barrier. For a vector of a few lines the barrier takes nearly all of
// the time, as in a real program. Short iterations are combined into one sample.
#pragma once

#include "protocol.hpp"

namespace atl::probe {

Json vector(const Request& request);

}  // namespace atl::probe
