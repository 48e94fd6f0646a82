#include <array>

#include "gups/gups.hpp"
#include "workload.hpp"

namespace atl::kernels {

std::span<const Workload* const> workloads() {
  static const std::array all = {&gups()};
  return all;
}

}  // namespace atl::kernels
