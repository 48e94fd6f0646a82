// Graph500's validation against right trees and against each way to be wrong.
#include "graph/graph500.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "graph/bfs.hpp"
#include "kernels/known_graphs.hpp"
#include "kernels/running.hpp"

namespace atl::kernels {
namespace {

// 0 -3- 1 -4- 2 -9- 0, 2 -1- 3 twice, 3 - 3, 1 -8- 3, and 4 -2- 5 apart.
EdgeList small_list(const Memory& memory) {
  const Edge edges[] = {{0, 1}, {1, 2}, {2, 0}, {2, 3}, {3, 2}, {3, 3}, {1, 3}, {4, 5}};
  const Weight weights[] = {3, 4, 9, 1, 5, 1, 8, 2};
  EdgeList list{6, make_array<Edge>(memory, 8), make_array<Weight>(memory, 8)};
  std::copy(std::begin(edges), std::end(edges), list.edges.begin());
  std::copy(std::begin(weights), std::end(weights), list.weights->begin());
  return list;
}

class Graph500 : public testing::Test {
 protected:
  // What the validation of a tree from vertex 0 says.
  static std::string fault(const std::vector<Vertex>& parents,
                           const std::optional<std::vector<std::uint64_t>>& distance = {}) {
    std::string said;
    with_team("atoll", 2, [&](Team& team, const Memory& memory) {
      const EdgeList list = small_list(memory);
      Distances distances = make_array<std::uint64_t>(memory, 6);
      if (distance) std::copy(distance->begin(), distance->end(), std::get<1>(distances).begin());
      try {
        const std::uint64_t edges =
            validate_tree(team, list, 0, parents, distance ? &distances : nullptr);
        EXPECT_EQ(edges, 7U);
      } catch (const WrongAnswer& wrong) {
        said = wrong.what();
      }
    });
    return said;
  }
  static constexpr Vertex kNo = kNone;
  static constexpr std::uint64_t kUn = kFar<std::uint64_t>;
};

TEST_F(Graph500, AcceptsRightTrees) {
  EXPECT_EQ(fault({0, 0, 0, 1, kNo, kNo}), "");
  EXPECT_EQ(fault({0, 0, 0, 2, kNo, kNo}), "");
  EXPECT_EQ(fault({0, 0, 1, 2, kNo, kNo}, {{0, 3, 7, 8, kUn, kUn}}), "");
}

TEST_F(Graph500, Rule1FindsWhatIsNoTree) {
  const std::string why = " does not lead to the root by its parents";
  EXPECT_EQ(fault({1, 0, 0, 2, kNo, kNo}), "graph500: rule 1: vertex 0" + why);
  EXPECT_EQ(fault({kNo, 0, 0, 2, kNo, kNo}), "graph500: rule 1: vertex 0" + why);
  // A cycle, an own parent that is no root, a parent that has none, and one that is no vertex.
  EXPECT_NE(fault({0, 0, 3, 2, kNo, kNo}).find("rule 1"), std::string::npos);
  EXPECT_EQ(fault({0, 0, 0, 3, kNo, kNo}), "graph500: rule 1: vertex 3" + why);
  EXPECT_EQ(fault({0, 0, 0, 4, kNo, kNo}), "graph500: rule 1: vertex 3" + why);
  EXPECT_EQ(fault({0, 0, 0, 6, kNo, kNo}), "graph500: rule 1: vertex 3" + why);
}

TEST_F(Graph500, Rule2FindsEdgesOfTheTreeThatAreNotAsLong) {
  // 9 is an upper bound of 2's distance, but no edge from 1 makes it; all edges are long enough.
  EXPECT_EQ(fault({0, 0, 1, 2, kNo, kNo}, {{0, 3, 6, 7, kUn, kUn}}),
            "graph500: rule 2: vertex 2 has another distance than the tree gives it");
  // The distances are right, the tree goes another way.
  EXPECT_EQ(fault({0, 0, 0, 2, kNo, kNo}, {{0, 3, 7, 8, kUn, kUn}}),
            "graph500: rule 2: vertex 2 has another distance than the tree gives it");
  // All are moved on by one, and a vertex outside of the tree has a distance.
  EXPECT_EQ(fault({0, 0, 1, 2, kNo, kNo}, {{1, 4, 8, 9, kUn, kUn}}),
            "graph500: rule 2: vertex 0 has another distance than the tree gives it");
  EXPECT_EQ(fault({0, 0, 1, 2, kNo, kNo}, {{0, 3, 7, 8, kUn, 5}}),
            "graph500: rule 2: vertex 5 has another distance than the tree gives it");
  // The parent is as far behind as it should be before.
  EXPECT_EQ(
      fault({0, 2, 0, 2, kNo, kNo}, {{0, 3, 7, 8, kUn, kUn}}).find("graph500: rule 2: vertex "),
      0U);
}

TEST_F(Graph500, Rule3FindsShorterWays) {
  const std::string why = " has an edge that is shorter than levels or distances differ";
  // 3 below 2 below 1, though 0 is a neighbour of 2.
  EXPECT_EQ(fault({0, 0, 1, 2, kNo, kNo}).find("graph500: rule 3: vertex "), 0U);
  EXPECT_EQ(fault({0, 0, 0, 2, kNo, kNo}, {{0, 3, 9, 10, kUn, kUn}}),
            "graph500: rule 3: vertex 1" + why);
}

TEST_F(Graph500, Rule4FindsWhatIsLeftOut) {
  EXPECT_EQ(fault({0, 0, 0, kNo, kNo, kNo}),
            "graph500: rule 4: vertex 3 is not in the tree, and a neighbour is");
}

TEST_F(Graph500, Rule5FindsParentsThatAreNoNeighbours) {
  EXPECT_EQ(fault({0, 0, 0, 0, kNo, kNo}),
            "graph500: rule 5: vertex 3 has a parent that is no neighbour");
  EXPECT_EQ(fault({0, 0, 0, 1, 0, 4}),
            "graph500: rule 5: vertex 4 has a parent that is no neighbour");
}

TEST(Graph500Kernels, TreesOfKnownGraphsAreValid) {
  for (const auto& [scheduler, workers] : teams()) {
    with_team(scheduler, workers, [&](Team& team, const Memory& memory) {
      for (const KnownGraph& known : known_graphs()) {
        EdgeList list{known.vertices, make_array<Edge>(memory, known.edges.size()),
                      make_array<Weight>(memory, known.edges.size())};
        std::copy(known.edges.begin(), known.edges.end(), list.edges.begin());
        std::mt19937 random(3);
        for (Weight& weight : *list.weights) weight = static_cast<Weight>(1 + random() % 1000);
        const Graph graph = build_graph(team, memory, list, {.weights = true});
        const Vertex source = known.vertices - 1;
        std::vector<Vertex> parents(known.vertices);
        bfs(team, memory, graph, source, parents);
        EXPECT_NO_THROW(validate_tree(team, list, source, parents)) << known.name << scheduler;
        const Distances distances = sssp(team, memory, graph, source, default_delta(graph));
        shortest_path_tree(team, graph, source, distances, parents);
        EXPECT_NO_THROW(validate_tree(team, list, source, parents, &distances))
            << known.name << scheduler;
      }
    });
  }
}

TEST(Graph500Kernels, NoParentMakesAWrongDistance) {
  with_team("os", 1, [](Team& team, const Memory& memory) {
    const Graph graph = build_graph(team, memory, small_list(memory), {.weights = true});
    constexpr std::uint64_t kUn = kFar<std::uint64_t>;
    const std::uint64_t wrong[] = {0, 3, 6, 8, kUn, kUn};  // 2's is 7
    Distances distances = make_array<std::uint64_t>(memory, 6);
    std::copy(std::begin(wrong), std::end(wrong), std::get<1>(distances).begin());
    std::vector<Vertex> parents(6);
    shortest_path_tree(team, graph, 0, distances, parents);
    EXPECT_EQ(parents, (std::vector<Vertex>{0, 0, kNone, kNone, kNone, kNone}));
  });
}

TEST(Graph500Kernels, RunAsAWorkload) {
  for (const char* const scale : {"1", "12"}) {
    const Result result = run_workload(graph500_workload(), "atoll", 2, {{"scale", scale}}, 4);
    EXPECT_GT(result.work, 0) << scale;
  }
}

}  // namespace
}  // namespace atl::kernels
