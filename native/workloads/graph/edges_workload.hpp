// The making of edges, beside a plain fill of the same memory.
#pragma once

#include "workload.hpp"

namespace atl::kernels {

[[nodiscard]] const Workload& edges_workload();

}  // namespace atl::kernels
