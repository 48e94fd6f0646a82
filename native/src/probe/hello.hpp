// `hello`: what this build measures with on this machine.
#pragma once

#include "protocol.hpp"

namespace atl::probe {

Json hello(const Request& request);

}  // namespace atl::probe
