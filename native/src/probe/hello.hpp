// `hello`: what this build measures with on this machine.
#pragma once

#include "protocol.hpp"

namespace atl::probe {

Json hello(const Request& request);

// The widest vectors of this CPU that the kernels have code for: scalar, avx2, avx512 or neon.
const char* widest_isa();

}  // namespace atl::probe
