// The graph workloads run whole, under the flags that they share.
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <sstream>

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

// An undirected graph of two components, which every search of it finds whole.
TEST(GraphWorkloads, SaveTheAnswerOfTheLastRun) {
  const std::string graph = testing::TempDir() + "atoll-saved.wel";
  const std::string path = testing::TempDir() + "atoll-saved.txt";
  std::ofstream(graph) << "0 1 5\n3 4 7\n";
  const auto saved = [&](const Workload& workload) {
    const Result result = run_workload(workload, "os", 1, {{"graph", graph}, {"save", path}}, 2, 3);
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    std::remove(path.c_str());
    return std::pair(text.str(), std::map(result.figures.begin(), result.figures.end()));
  };
  EXPECT_EQ(saved(components_workload()).first, "0 0\n1 0\n2 2\n3 3\n4 3\n");
  for (const Workload* const workload : {&bfs_workload(), &sssp_workload()}) {
    const bool tree = workload == &bfs_workload();
    const auto [text, figures] = saved(*workload);
    EXPECT_EQ(figures.at("reached_vertices"), 2);
    const auto source = static_cast<int>(figures.at("source"));
    const int first = source < 2 ? 0 : 3;  // of the component
    std::string expected;
    for (int v = 0; v < 5; ++v) {
      const int value = tree ? source : (v == source ? 0 : (first == 0 ? 5 : 7));
      expected += std::to_string(v) + ' ' +
                  (v == first || v == first + 1 ? std::to_string(value) : "-") + '\n';
    }
    EXPECT_EQ(text, expected);
  }
  std::istringstream scores(saved(pagerank_workload()).first);
  double sum = 0;
  int line = 0;
  for (double vertex = 0, score = 0; scores >> vertex >> score; sum += score) {
    EXPECT_EQ(vertex, line++);
  }
  EXPECT_EQ(line, 5);
  EXPECT_NEAR(sum, 0.83, 0.03);  // what reaches vertex 2 is lost
  std::remove(graph.c_str());
}

}  // namespace
}  // namespace atl::kernels
