// Finds the kernel for each `do` of the protocol.
#pragma once

#include <string>

#include "protocol.hpp"

namespace atl::probe {

using Kernel = Json (*)(const Request&);

// Returns nullptr if there is no kernel of this name.
Kernel find_kernel(const std::string& name);

}  // namespace atl::probe
