#include "graph/bfs.hpp"
#include "gups/gups.hpp"
#include "sgd/sgd.hpp"
#include "workload.hpp"

namespace atl::kernels {

std::span<const Workload* const> workloads() {
  static const Workload* const all[] = {
      &bfs_workload(),
      &gups(),
      &sgd(),
  };
  return all;
}

}  // namespace atl::kernels
