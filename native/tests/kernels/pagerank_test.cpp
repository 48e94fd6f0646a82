// PageRank against many plain iterations in doubles, and its verifier against wrong scores.
#include "graph/pagerank.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "kernels/known_graphs.hpp"

namespace atl::kernels {
namespace {

std::vector<double> exact(const Graph& graph) {
  std::vector<double> scores(graph.vertices, 0);
  for (int times = 0; times < 150; ++times) {
    std::vector<double> next(graph.vertices, 0.15 / graph.vertices);
    for (Vertex from = 0; from < graph.vertices; ++from) {
      for (const Vertex to : graph.out.of(from)) {
        next[to] += 0.85 * scores[from] / static_cast<double>(graph.out.degree(from));
      }
    }
    scores = next;
  }
  return scores;
}

double difference(std::span<const float> scores, std::span<const double> right) {
  double sum = 0;
  for (std::size_t v = 0; v < scores.size(); ++v) sum += std::abs(scores[v] - right[v]);
  return sum;
}

TEST(PageRank, IsWhereIterationsEnd) {
  std::map<const Graph*, std::vector<double>> known;
  on_known_graphs([&](Team& team, const Memory& memory, const Graph& graph,
                      const CompressedGraph& small, const std::string& where) {
    std::vector<double>& right = known[&graph];
    if (right.empty()) right = exact(graph);
    // What is left after a change of c is at most c * 0.85 / 0.15.
    constexpr double kLeft = kTolerance * 0.85 / 0.15 + 1e-5;
    std::vector<float> scores(graph.vertices, 77);
    EXPECT_LT(pagerank(team, memory, graph, scores).change, kTolerance) << where;
    EXPECT_LT(difference(scores, right), kLeft) << where;
    EXPECT_LT(verify_pagerank(graph, scores), kTolerance) << where;
    std::fill(scores.begin(), scores.end(), 77.0F);
    EXPECT_LT(pagerank_by_messages(team, graph, scores).change, kTolerance) << where;
    EXPECT_LT(difference(scores, right), kLeft) << where << ", messages";
    std::fill(scores.begin(), scores.end(), 77.0F);
    EXPECT_LT(pagerank(team, memory, small, scores).change, kTolerance) << where;
    EXPECT_LT(difference(scores, right), kLeft) << where << ", compressed";
    EXPECT_LT(verify_pagerank(small, scores), kTolerance) << where;
    EXPECT_LT(pagerank_by_messages(team, small, scores).change, kTolerance) << where;
    EXPECT_LT(difference(scores, right), kLeft) << where << ", compressed, messages";
  });
}

TEST(PageRank, OfAGraphWithoutVerticesIsNothing) {
  const Graph graph = build({"", 0, {}}, false);
  with_team("os", 2, [&](Team& team, const Memory& memory) {
    EXPECT_EQ(pagerank(team, memory, graph, {}).count, 0);
    EXPECT_EQ(pagerank_by_messages(team, graph, {}).count, 1);
  });
}

// A hub's row has more terms than a float has digits for.
TEST(PageRank, AddsUpLongRows) {
  KnownGraph star{"", 1 << 20, {}};
  for (Vertex v = 1; v < star.vertices; ++v) star.edges.push_back({0, v});
  const Graph graph = build(star, false);
  std::vector<float> scores(star.vertices);
  with_team("atoll", 2,
            [&](Team& team, const Memory& memory) { pagerank(team, memory, graph, scores); });
  // hub = b + 0.85 n leaf and leaf = b + 0.85 hub / n, for n leaves and jumps of b.
  const double leaves = star.vertices - 1;
  const double jump = 0.15 / star.vertices;
  const double hub = (jump + 0.85 * leaves * jump) / (1 - 0.85 * 0.85);
  EXPECT_NEAR(scores[0] / hub, 1, 1e-3);
}

TEST(PageRank, VerifierFindsWhatIsWrong) {
  const Graph graph = build({"", 2, {{0, 1}}}, false);
  EXPECT_LT(verify_pagerank(graph, std::vector<float>{0.5, 0.5}), 1e-6);
  try {
    verify_pagerank(graph, std::vector<float>{0.501F, 0.499F});
    FAIL();
  } catch (const WrongAnswer& fault) {
    EXPECT_STREQ(fault.what(),
                 "pr: another sweep changes the scores by 0.003700, not by less than 0.000100");
  }
}

}  // namespace
}  // namespace atl::kernels
