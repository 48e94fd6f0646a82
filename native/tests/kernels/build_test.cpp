// Rows built from edges, against maps.
#include "graph/build.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <numeric>
#include <random>

#include "graph/edges.hpp"
#include "graph/loops.hpp"
#include "graph/relabel.hpp"
#include "graph/rows_builder.hpp"
#include "kernels/graphs.hpp"

namespace atl::kernels {
namespace {

enum class Kept { kOut, kIn, kBoth };

PlainRows expected(const EdgeList& list, Kept kept) {
  PlainRows rows;
  const auto keep = [&](Vertex from, Vertex to, Weight weight) {
    const auto [found, fresh] = rows.emplace(std::pair(from, to), weight);
    if (!fresh) found->second = std::min(found->second, weight);
  };
  for (std::size_t at = 0; at < list.edges.size(); ++at) {
    const auto [from, to] = list.edges[at];
    const Weight weight = list.weights ? (*list.weights)[at] : 0;
    if (from == to) continue;
    if (kept != Kept::kIn) keep(from, to, weight);
    if (kept != Kept::kOut) keep(to, from, weight);
  }
  return rows;
}

EdgeList random_list(const Memory& memory, Vertex vertices, std::size_t edges, bool weights,
                     std::uint32_t seed) {
  // Entries with their weights have 8 bytes; with many vertices and great weights 16.
  const std::uint32_t most = seed % 2 == 0 ? std::numeric_limits<Weight>::max() : 1000;
  EdgeList list{vertices, make_array<Edge>(memory, edges), {}};
  if (weights) list.weights.emplace(make_array<Weight>(memory, edges));
  std::mt19937 random(seed);
  // Some vertices have many edges.
  const auto some = [&] { return static_cast<Vertex>(random() % (random() % vertices + 1)); };
  for (std::size_t at = 0; at < edges; ++at) {
    list.edges[at] = at % 5 == 4 ? list.edges[at - 1] : Edge{some(), some()};
    if (weights) (*list.weights)[at] = static_cast<Weight>(1 + random() % most);
  }
  return list;
}

TEST(BuildGraph, KeepsWhatMapsKeep) {
  with_team("os", 2, [](Team& team, const Memory& memory) {
    for (const Vertex vertices : {1u, 2u, 3u, 100u, 4096u, 4097u, 70'000u, 5'000'000u}) {
      for (const std::size_t edges : {0, 1, 7, 1000, 20'000}) {
        for (const bool weights : {false, true}) {
          if (vertices > 1'000'000 && (edges != 1000 || !weights)) continue;  // takes long
          const EdgeList list = random_list(memory, vertices, edges, weights, vertices);
          const Graph both = build_graph(team, memory, list, {.weights = weights});
          EXPECT_TRUE(plain(both.out, vertices) == expected(list, Kept::kBoth)) << vertices;
          EXPECT_FALSE(both.in);
          EXPECT_EQ(both.edges * 2, both.out.to.size());
          const Graph directed = build_graph(
              team, memory, list, {.directed = true, .weights = weights, .incoming = true});
          EXPECT_TRUE(plain(directed.out, vertices) == expected(list, Kept::kOut)) << vertices;
          EXPECT_TRUE(plain(*directed.in, vertices) == expected(list, Kept::kIn)) << vertices;
          EXPECT_EQ(directed.edges, directed.out.to.size());
        }
      }
    }
  });
}

// The range of the hub is too large for a worker's room.
TEST(BuildGraph, SortsTheHubOfAStarInPlace) {
  with_team("os", 2, [](Team& team, const Memory& memory) {
    constexpr Vertex kLeaves = 80'000;
    for (const bool weights : {false, true}) {
      EdgeList list{kLeaves + 1, make_array<Edge>(memory, 2 * kLeaves), {}};
      if (weights) list.weights.emplace(make_array<Weight>(memory, 2 * kLeaves));
      for (Vertex at = 0; at < 2 * kLeaves; ++at) {
        list.edges[at] = {kLeaves, static_cast<Vertex>(at * 48'271ULL % kLeaves)};
        if (weights) (*list.weights)[at] = static_cast<Weight>(1 + at % 1000);
      }
      ASSERT_GT(list.edges.size(), rows::most_room(2 * list.edges.size(), 2));
      const Graph star = build_graph(team, memory, list, {.weights = weights});
      EXPECT_TRUE(plain(star.out, star.vertices) == expected(list, Kept::kBoth));
    }
  });
}

TEST(BuildGraph, GivesWeightsThatBothDirectionsShare) {
  with_team("os", 2, [](Team& team, const Memory& memory) {
    const EdgeList list = uniform_edges(team, memory, 10, 16, 3);
    const Graph graph = build_graph(team, memory, list, {.weights = true});
    const PlainRows rows = plain(graph.out, graph.vertices);
    double sum = 0;
    for (const auto& [edge, weight] : rows) {
      EXPECT_EQ(rows.at({edge.second, edge.first}), weight);
      EXPECT_TRUE(weight >= 1 && weight <= 255);
      sum += weight;
    }
    EXPECT_NEAR(sum / static_cast<double>(graph.out.to.size()), 128, 2);
  });
}

TEST(BuildGraph, IsTheSameForAnyTeam) {
  PlainRows first;
  for (const auto& [scheduler, workers] : teams()) {
    with_team(scheduler, workers, [&](Team& team, const Memory& memory) {
      const EdgeList list = kronecker_edges(team, memory, 10, 16, 7);
      const Graph graph = build_graph(team, memory, list, {.weights = true});
      const PlainRows rows = plain(graph.out, graph.vertices);
      if (first.empty()) first = rows;
      EXPECT_TRUE(rows == first) << scheduler << " with " << workers;
    });
  }
}

TEST(Relabelled, KeepsTheGraphUnderNewNames) {
  with_team("os", 2, [](Team& team, const Memory& memory) {
    for (const int scale : {1, 5, 11}) {
      for (const bool weights : {false, true}) {
        const EdgeList list = kronecker_edges(team, memory, scale, 16, 1);
        const Graph graph = build_graph(team, memory, list, {.weights = weights});
        std::vector<Vertex> old(graph.vertices);  // by new name
        std::iota(old.begin(), old.end(), 0u);
        std::stable_sort(old.begin(), old.end(), [&](Vertex left, Vertex right) {
          return graph.out.degree(left) > graph.out.degree(right);
        });
        std::vector<Vertex> fresh(graph.vertices);
        for (Vertex name = 0; name < graph.vertices; ++name) fresh[old[name]] = name;
        PlainRows all;
        PlainRows lower;
        for (const auto& [edge, weight] : plain(graph.out, graph.vertices)) {
          const std::pair now(fresh[edge.first], fresh[edge.second]);
          all.emplace(now, weight);
          if (now.second < now.first) lower.emplace(now, weight);
        }
        const Graph relabelled_all = relabelled(team, memory, graph);
        EXPECT_TRUE(plain(relabelled_all.out, graph.vertices) == all);
        const Graph relabelled_lower = relabelled(team, memory, graph, Keep::kLower);
        EXPECT_TRUE(plain(relabelled_lower.out, graph.vertices) == lower);
      }
    }
  });
}

TEST(LoopByEdges, MeetsEachVertexOnce) {
  with_team("atoll", 2, [](Team& team, const Memory& memory) {
    for (const int scale : {1, 4, 12}) {
      const EdgeList list = kronecker_edges(team, memory, scale, 4, 1);
      const Graph graph = build_graph(team, memory, list, {});
      std::vector<std::atomic<int>> met(graph.vertices);
      loop_by_edges(team, graph.out, [&](Vertex first, Vertex last) {
        for (Vertex v = first; v < last; ++v) ++met[v];
      });
      EXPECT_TRUE(
          std::all_of(met.begin(), met.end(), [](const auto& times) { return times == 1; }));
    }
  });
}

}  // namespace
}  // namespace atl::kernels
