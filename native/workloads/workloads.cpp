#include "graph/bfs.hpp"
#include "graph/components.hpp"
#include "graph/edges_workload.hpp"
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
      &bfs_workload(), &components_workload(), &pagerank_workload(), &edges_workload(),     &gups(),
      &sgd(),          &sssp_workload(),       &streamcluster(),     &triangles_workload(),
  };
  return all;
}

}  // namespace atl::kernels
