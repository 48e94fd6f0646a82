// The graph workloads run whole, under the flags that they share.
#include <gtest/gtest.h>

#include "graph/bfs.hpp"
#include "graph/components.hpp"
#include "graph/pagerank.hpp"
#include "graph/sssp.hpp"
#include "kernels/running.hpp"

namespace atl::kernels {
namespace {

TEST(GraphWorkloads, RunUnderEachFlag) {
  for (const Workload* const workload :
       {&bfs_workload(), &components_workload(), &pagerank_workload(), &sssp_workload()}) {
    for (const char* const variant : {"shared", "messages"}) {
      for (const char* const directed : {"no", "yes"}) {
        for (const char* const rows : {"plain", "compressed"}) {
          if (workload == &sssp_workload() && rows == std::string("compressed")) continue;
          const Result result = run_workload(
              *workload, "atoll", 2,
              {{"scale", "10"}, {"variant", variant}, {"directed", directed}, {"rows", rows}}, 2);
          EXPECT_GT(result.work, 0) << workload->name << variant << directed << rows;
        }
      }
    }
  }
}

// Rates of different kernels compare: an undirected graph's edges count once.
TEST(GraphWorkloads, CountEachEdgeOnce) {
  for (const Workload* const workload : {&components_workload(), &pagerank_workload()}) {
    const Result result = run_workload(*workload, "atoll", 2, {{"scale", "10"}});
    const std::map<std::string, double> figures(result.figures.begin(), result.figures.end());
    const double sweeps = figures.contains("sweeps") ? figures.at("sweeps") : 1;
    EXPECT_EQ(result.work, figures.at("edges") * sweeps) << workload->name;
  }
}

}  // namespace
}  // namespace atl::kernels
