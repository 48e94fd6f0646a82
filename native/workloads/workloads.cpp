#include <array>

#include "graph/bfs.hpp"
#include "gups/gups.hpp"
#include "workload.hpp"

namespace atl::kernels {

std::span<const Workload* const> workloads() {
  static const std::array all = {&bfs_workload(), &gups()};
  return all;
}

}  // namespace atl::kernels
