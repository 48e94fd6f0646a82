// Every `do` of the protocol by its name.
#pragma once

#include <string>

#include "protocol.hpp"

namespace atl::probe {

using Kernel = Json (*)(const Request&);

// nullptr: there is none of this name.
Kernel find_kernel(const std::string& name);

}  // namespace atl::probe
