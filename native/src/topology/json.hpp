// A Machine as the JSON of atoll/machine 1 (src/atoll/schema/machine.py).
#pragma once

#include <string>

#include "model.hpp"

namespace atl::topology {

std::string to_json(const Machine& machine);

}  // namespace atl::topology
