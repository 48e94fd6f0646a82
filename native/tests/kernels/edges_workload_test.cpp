// The workload that makes edges compares all of them, for graphs of any size.
#include "graph/edges_workload.hpp"

#include <gtest/gtest.h>

#include <string>

#include "kernels/graphs.hpp"

namespace atl::kernels {
namespace {

TEST(EdgesWorkload, ComparesAllEdges) {
  for (const std::string graph : {"kronecker", "uniform"}) {
    for (const std::string scale : {"1", "11"}) {
      with_team("os", 3, [&](Team& team, const Memory& memory) {
        Conditions conditions{.memory = memory};
        const Settings settings({{"graph", graph}, {"scale", scale}, {"degree", "5"}});
        const Result result = edges_workload().run(team, settings, conditions);
        EXPECT_EQ(result.work, scale == "1" ? 10 : 10240);
        EXPECT_EQ(conditions.seconds.size(), 3u);
      });
    }
  }
}

}  // namespace
}  // namespace atl::kernels
