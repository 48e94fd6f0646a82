// Components against union by relabelling, and their verifier against wrong labels.
#include "graph/components.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "kernels/known_graphs.hpp"

namespace atl::kernels {
namespace {

// Both ends of each edge get the smaller label, until that changes nothing.
std::vector<Vertex> smallest_labels(const Graph& graph) {
  std::vector<Vertex> labels(graph.vertices);
  std::iota(labels.begin(), labels.end(), Vertex{0});
  for (bool changed = true; changed;) {
    changed = false;
    for (Vertex from = 0; from < graph.vertices; ++from) {
      for (const Vertex to : graph.out.of(from)) {
        if (labels[from] == labels[to]) continue;
        labels[from] = labels[to] = std::min(labels[from], labels[to]);
        changed = true;
      }
    }
  }
  return labels;
}

TEST(Components, HaveTheirSmallestVertexAsLabel) {
  on_known_graphs([](Team& team, const Memory& memory, const Graph& graph,
                     const CompressedGraph& small, const std::string& where) {
    const std::vector<Vertex> right = smallest_labels(graph);
    std::vector<Vertex> labels(graph.vertices, 77);
    components(team, memory, graph, labels);
    EXPECT_EQ(labels, right) << where;
    std::fill(labels.begin(), labels.end(), 77u);
    components_by_messages(team, graph, labels);
    EXPECT_EQ(labels, right) << where << ", messages";
    std::fill(labels.begin(), labels.end(), 77u);
    components(team, memory, small, labels);
    EXPECT_EQ(labels, right) << where << ", compressed";
    std::fill(labels.begin(), labels.end(), 77u);
    components_by_messages(team, small, labels);
    EXPECT_EQ(labels, right) << where << ", compressed, messages";
    std::uint64_t count = 0;
    for (Vertex v = 0; v < graph.vertices; ++v) count += right[v] == v ? 1 : 0;
    EXPECT_EQ(verify_components(graph, labels), count) << where;
    EXPECT_EQ(verify_components(small, labels), count) << where;
  });
}

TEST(Components, OfAGraphWithoutVerticesAreNone) {
  const Graph graph = build({"", 0, {}}, false);
  with_team("os", 2, [&](Team& team, const Memory& memory) {
    components(team, memory, graph, {});
    components_by_messages(team, graph, {});
  });
  EXPECT_EQ(verify_components(graph, {}), 0u);
}

TEST(Components, VerifierFindsWhatIsWrong) {
  const Graph graph = build({"", 5, {{3, 1}, {1, 4}, {0, 2}}}, false);
  EXPECT_EQ(verify_components(graph, std::vector<Vertex>{0, 1, 0, 1, 1}), 2u);
  const auto message = [&](std::vector<Vertex> labels) -> std::string {
    try {
      verify_components(graph, labels);
    } catch (const WrongAnswer& fault) {
      return fault.what();
    }
    return "";
  };
  EXPECT_EQ(message({0, 1, 0, 3, 1}), "cc: vertex 3 has label 3, not 1");  // one too many
  EXPECT_EQ(message({0, 0, 0, 0, 0}), "cc: vertex 1 has label 0, not 1");  // one too few
}

}  // namespace
}  // namespace atl::kernels
