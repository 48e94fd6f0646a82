// `spin`: how fast each CPU is, by a chain of dependent 64-bit multiplications in registers.
//
// All CPUs at once, so that they share their package's power as they will in the measuring proper;
// one that has enough samples goes on until all have. A multiplication takes a fixed number of
// cycles (3 on x86-64), so a change of its time is a change of frequency or time taken by others.
#pragma once

#include "protocol.hpp"

namespace atl::probe {

Json spin(const Request& request);

}  // namespace atl::probe
