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
        const Result result =
            run_workload(*workload, "atoll", 2,
                         {{"scale", "10"}, {"variant", variant}, {"directed", directed}}, 2);
        EXPECT_GT(result.work, 0) << workload->name << variant << directed;
      }
    }
  }
}

}  // namespace
}  // namespace atl::kernels
