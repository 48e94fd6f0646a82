// Breadth-first search against depths that relaxation finds, and its verifier against wrong trees.
#include "graph/bfs.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "kernels/known_graphs.hpp"

namespace atl::kernels {
namespace {

// Depths by Bellman and Ford: no queue, no order. Slow, so once for each graph and source.
std::vector<std::uint64_t> relaxed_depths(const Graph& graph, Vertex source) {
  std::vector<std::uint64_t> depth(graph.vertices, kNone);
  depth[source] = 0;
  for (bool changed = true; changed;) {
    changed = false;
    for (Vertex from = 0; from < graph.vertices; ++from) {
      for (const Vertex to : graph.out.of(from)) {
        if (depth[from] + 1 >= depth[to]) continue;
        depth[to] = depth[from] + 1;
        changed = true;
      }
    }
  }
  return depth;
}

void check_tree(const Graph& graph, Vertex source, std::span<const Vertex> parents,
                const std::vector<std::uint64_t>& depth, const std::string& where) {
  for (Vertex v = 0; v < graph.vertices; ++v) {
    if (v == source || depth[v] == kNone) {
      ASSERT_EQ(parents[v], v == source ? source : kNone) << v << where;
      continue;
    }
    ASSERT_LT(parents[v], graph.vertices) << v << where;
    ASSERT_EQ(depth[parents[v]] + 1, depth[v]) << v << where;
    const auto row = graph.out.of(parents[v]);
    ASSERT_TRUE(std::binary_search(row.begin(), row.end(), v)) << v << where;
  }
}

TEST(Bfs, FindsAShortestTree) {
  std::map<std::pair<const Graph*, Vertex>, std::vector<std::uint64_t>> depths;
  on_known_graphs([&](Team& team, const Memory& memory, const Graph& graph,
                      const CompressedGraph& small, const std::string& where) {
    for (const Vertex source : {Vertex{0}, graph.vertices / 2, graph.vertices - 1}) {
      std::vector<std::uint64_t>& depth = depths[{&graph, source}];
      if (depth.empty()) depth = relaxed_depths(graph, source);
      std::vector<Vertex> parents(graph.vertices, 77);
      bfs(team, memory, graph, source, parents);
      check_tree(graph, source, parents, depth, where);
      EXPECT_NO_THROW(verify_bfs(graph, source, parents)) << where;
      bfs_by_messages(team, graph, source, parents);
      check_tree(graph, source, parents, depth, where + ", messages");
      if (source != graph.vertices / 2) continue;  // from one source on both kinds of rows
      bfs(team, memory, small, source, parents);
      check_tree(graph, source, parents, depth, where + ", compressed");
      EXPECT_NO_THROW(verify_bfs(small, source, parents)) << where;
      bfs_by_messages(team, small, source, parents);
      check_tree(graph, source, parents, depth, where + ", compressed, messages");
    }
  });
}

TEST(Bfs, VerifierFindsWhatIsWrong) {
  // 0 - 1 - 2 - 3 - 0, 3 - 4 and 5 alone.
  const KnownGraph known{"", 6, {{0, 1}, {1, 2}, {2, 3}, {3, 0}, {3, 4}}};
  const Graph graph = build(known, false);
  const std::vector<Vertex> right = {0, 0, 1, 0, 3, kNone};
  const Reached reached = verify_bfs(graph, 0, right);
  EXPECT_EQ(reached.vertices, 5u);
  EXPECT_EQ(reached.edges, 10u);
  const auto message = [&](Vertex v, Vertex parent) -> std::string {
    std::vector<Vertex> parents = right;
    parents[v] = parent;
    try {
      verify_bfs(graph, 0, parents);
    } catch (const WrongAnswer& fault) {
      return fault.what();
    }
    return "";
  };
  EXPECT_EQ(message(2, 3), "");  // as good
  EXPECT_EQ(message(0, 1), "bfs: vertex 0 is the source and has another parent");
  EXPECT_EQ(message(4, kNone), "bfs: vertex 4 has no parent and can be reached");
  EXPECT_EQ(message(5, 4), "bfs: vertex 5 has a parent and cannot be reached");
  EXPECT_EQ(message(4, 6), "bfs: vertex 4 has a parent that is no vertex");
  EXPECT_EQ(message(4, 0), "bfs: vertex 4 has no edge from its parent");
  EXPECT_EQ(message(3, 4), "bfs: vertex 3 is not one step behind its parent");
}

}  // namespace
}  // namespace atl::kernels
