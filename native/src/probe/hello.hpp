// `hello`: the clock and instruction set that this build uses on this machine.
#pragma once

#include "protocol.hpp"

namespace atl::probe {

Json hello(const Request& request);

}  // namespace atl::probe
