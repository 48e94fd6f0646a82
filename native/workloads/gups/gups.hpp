// RandomAccess of the HPC Challenge: random updates of a large table.
#pragma once

#include "workload.hpp"

namespace atl::kernels {

[[nodiscard]] const Workload& gups();

}  // namespace atl::kernels
