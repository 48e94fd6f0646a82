#include "graph/bfs.hpp"
#include "gups/gups.hpp"
#include "sgd/sgd.hpp"
#include "streamcluster/streamcluster.hpp"
#include "workload.hpp"

namespace atl::kernels {

std::span<const Workload* const> workloads() {
  static const Workload* const all[] = {
      &bfs_workload(),
      &gups(),
      &sgd(),
      &streamcluster(),
  };
  return all;
}

}  // namespace atl::kernels
