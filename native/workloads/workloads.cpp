#include "graph/bfs.hpp"
#include "graph/components.hpp"
#include "graph/edges_workload.hpp"
#include "graph/graph500.hpp"
#include "graph/pagerank.hpp"
#include "graph/sssp.hpp"
#include "graph/triangles.hpp"
#include "gups/gups.hpp"
#include "sgd/sgd.hpp"
#include "streamcluster/streamcluster.hpp"
#include "workload.hpp"

namespace atl::kernels {

std::span<const Workload* const> workloads() {
  static const Workload* const all[] = {
      &bfs_workload(),
      &components_workload(),
      &edges_workload(),
      &graph500_workload(),
      &gups(),
      &pagerank_workload(),
      &sgd(),
      &sssp_workload(),
      &streamcluster(),
      &triangles_workload(),
  };
  return all;
}

}  // namespace atl::kernels
