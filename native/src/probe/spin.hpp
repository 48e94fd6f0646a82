// `spin`: the speed of each CPU, from a chain of dependent 64-bit multiplications in registers.
//
// All CPUs run at once, so that they share their package's power as in the later measurements. A
// CPU with enough samples continues until all have enough. A multiplication takes a fixed number of
// cycles (3 on x86-64), so a change in its time means another frequency or time lost to others.
#pragma once

#include "protocol.hpp"

namespace atl::probe {

Json spin(const Request& request);

}  // namespace atl::probe
