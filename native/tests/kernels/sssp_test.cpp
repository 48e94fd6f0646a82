// Shortest paths against Bellman and Ford's, and the verifier against wrong distances.
#include "graph/sssp.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "graph/near_edges.hpp"
#include "kernels/known_graphs.hpp"
#include "kernels/running.hpp"

namespace atl::kernels {
namespace {

constexpr std::uint64_t kUnreached = kFar<std::uint64_t>;

// By rounds over all edges: no queue, no order.
std::vector<std::uint64_t> relaxed_distances(const Graph& graph, Vertex source) {
  std::vector<std::uint64_t> distance(graph.vertices, kUnreached);
  distance[source] = 0;
  for (bool changed = true; changed;) {
    changed = false;
    for (Vertex from = 0; from < graph.vertices; ++from) {
      if (distance[from] == kUnreached) continue;
      const auto to = graph.out.of(from);
      for (std::size_t at = 0; at < to.size(); ++at) {
        const std::uint64_t reached =
            distance[from] + static_cast<std::uint64_t>(graph.out.weights_of(from)[at]);
        if (reached >= distance[to[at]]) continue;
        distance[to[at]] = reached;
        changed = true;
      }
    }
  }
  return distance;
}

Graph weighted(Team& team, const Memory& memory, const KnownGraph& known, bool directed,
               Weight most) {
  EdgeList list{known.vertices, make_array<Edge>(memory, known.edges.size()),
                make_array<Weight>(memory, known.edges.size())};
  std::copy(known.edges.begin(), known.edges.end(), list.edges.begin());
  std::mt19937 random(7);
  std::uniform_int_distribution<Weight> weight(std::max<Weight>(most / 1000, 1), most);
  for (Weight& each : *list.weights) each = weight(random);
  return build_graph(team, memory, list,
                     {.directed = directed, .weights = true, .incoming = directed});
}

// A graph with its right answers, which are found once for all teams.
struct Case {
  std::string name;
  Graph graph;
  std::vector<Vertex> sources;
  std::vector<std::vector<std::uint64_t>> right;  // of each source
};

std::vector<Case> cases(Weight most) {
  std::vector<Case> all;
  with_team("os", 1, [&](Team& team, const Memory& memory) {
    for (const KnownGraph& known : known_graphs()) {
      for (const bool directed : {false, true}) {
        all.push_back({known.name + (directed ? ", directed" : ""),
                       weighted(team, memory, known, directed, most),
                       {0, known.vertices - 1},
                       {}});
        Case& made = all.back();
        for (const Vertex source : made.sources) {
          made.right.push_back(relaxed_distances(made.graph, source));
        }
      }
    }
  });
  return all;
}

std::vector<std::uint64_t> plain(const Distances& distances, Vertex vertices) {
  std::vector<std::uint64_t> all(vertices);
  for (Vertex v = 0; v < vertices; ++v) all[v] = distance_of(distances, v);
  return all;
}

void check_distances(Team& team, const Memory& memory, const Case& each, std::uint64_t delta,
                     const std::string& where) {
  for (std::size_t at = 0; at < each.sources.size(); ++at) {
    const Vertex source = each.sources[at];
    const Distances found = sssp(team, memory, each.graph, source, delta);
    EXPECT_EQ(plain(found, each.graph.vertices), each.right[at]) << where << each.name;
    EXPECT_NO_THROW(verify_sssp(team, each.graph, source, found)) << where << each.name;
  }
}

TEST(Sssp, FindsTheDistances) {
  const std::vector<Case> all = cases(255);
  for (const auto& [scheduler, workers] : teams()) {
    const std::string where = scheduler + ", " + std::to_string(workers) + " workers, ";
    with_team(scheduler, workers, [&](Team& team, const Memory& memory) {
      for (const Case& each : all) {
        check_distances(team, memory, each, default_delta(each.graph), where);
        const Distances sent = sssp_by_messages(team, memory, each.graph, each.sources[0]);
        EXPECT_EQ(plain(sent, each.graph.vertices), each.right[0]) << where << each.name;
      }
    });
  }
}

// The window, its buckets and where pulling begins depend on the width.
TEST(Sssp, AnyWidthOfBucketsIsRight) {
  for (const Weight most : {Weight{1}, Weight{255}, Weight{1} << 20}) {
    const std::vector<Case> all = cases(most);
    with_team("atoll", 2, [&](Team& team, const Memory& memory) {
      for (const std::uint64_t delta : {1ULL, 2ULL, 40ULL, 1ULL << 12, 1ULL << 31}) {
        if (delta * 4096 < static_cast<std::uint64_t>(most)) continue;
        for (const Case& each : all) {
          check_distances(team, memory, each, delta, std::to_string(delta) + ", ");
        }
      }
    });
  }
}

TEST(Sssp, DistancesBeyond32BitsAreExact) {
  constexpr Weight kMost = std::numeric_limits<Weight>::max();
  const std::vector<Case> all = cases(kMost);
  for (const int workers : {1, 2, 5}) {
    with_team("atoll", workers, [&](Team& team, const Memory& memory) {
      for (const Case& each : all) {
        check_distances(team, memory, each, default_delta(each.graph), "");
      }
      // 999 edges, each as long as can be: the distance of the last is not what a word wraps to.
      KnownGraph path{"path", 1000, {}};
      for (Vertex v = 0; v < 999; ++v) path.edges.push_back({v, v + 1});
      EdgeList list{1000, make_array<Edge>(memory, 999), make_array<Weight>(memory, 999)};
      std::copy(path.edges.begin(), path.edges.end(), list.edges.begin());
      std::fill(list.weights->begin(), list.weights->end(), kMost);
      const Graph graph = build_graph(team, memory, list, {.weights = true});
      for (const std::uint64_t delta : {std::uint64_t{1} << 31, default_delta(graph)}) {
        const Distances found = sssp(team, memory, graph, 0, delta);
        EXPECT_EQ(distance_of(found, 999), 999 * static_cast<std::uint64_t>(kMost));
        EXPECT_EQ(distance_of(found, 1), static_cast<std::uint64_t>(kMost));
        EXPECT_NO_THROW(verify_sssp(team, graph, 0, found));
      }
    });
  }
}

TEST(Sssp, TheVerifierFindsWrongDistances) {
  with_team("atoll", 2, [](Team& team, const Memory& memory) {
    // 0 -5- 1 -7- 2, 0 -20- 2, and 3 alone.
    EdgeList list{4, make_array<Edge>(memory, 3), make_array<Weight>(memory, 3)};
    const Edge edges[] = {{0, 1}, {1, 2}, {0, 2}};
    const Weight weights[] = {5, 7, 20};
    std::copy(std::begin(edges), std::end(edges), list.edges.begin());
    std::copy(std::begin(weights), std::end(weights), list.weights->begin());
    const Graph graph = build_graph(team, memory, list, {.weights = true});
    const auto message = [&](std::vector<std::uint64_t> given) -> std::string {
      Distances distances = make_array<std::uint64_t>(memory, 4);
      std::copy(given.begin(), given.end(), std::get<1>(distances).begin());
      try {
        verify_sssp(team, graph, 0, distances);
      } catch (const WrongAnswer& fault) {
        return fault.what();
      }
      return "";
    };
    EXPECT_EQ(message({0, 5, 12, kUnreached}), "");
    const auto wrong = [](Vertex v) {
      return "sssp: vertex " + std::to_string(v) +
             " has not the least distance of its neighbours plus an edge";
    };
    EXPECT_EQ(message({0, 5, 13, kUnreached}), wrong(2));          // an edge is shorter
    EXPECT_EQ(message({0, 5, 11, kUnreached}), wrong(2));          // no path has it
    EXPECT_EQ(message({0, 5, 12, 40}), wrong(3));                  // no edge leads there
    EXPECT_EQ(message({0, 5, kUnreached, kUnreached}), wrong(2));  // it can be reached
    EXPECT_EQ(message({1, 6, 13, kUnreached}), wrong(0));          // all moved on by one
    EXPECT_EQ(message({kUnreached, kUnreached, kUnreached, kUnreached}), wrong(0));
  });
}

TEST(Sssp, RunsAsAWorkload) {
  for (const char* const graph : {"kronecker", "uniform"}) {
    const Result result = run_workload(sssp_workload(), "atoll", 2,
                                       {{"graph", graph}, {"scale", "12"}, {"degree", "8"}}, 3);
    EXPECT_GT(result.work, 0) << graph;
  }
}

TEST(NearEdges, PicksTheShortOnes) {
  std::mt19937 random(3);
  for (std::size_t count : {0U, 1U, 15U, 16U, 17U, 100U, 255U, 256U}) {
    std::vector<Vertex> to(count);
    std::vector<Weight> weight(count);
    for (std::size_t at = 0; at < count; ++at) {
      to[at] = static_cast<Vertex>(random());
      weight[at] = static_cast<Weight>(1 + random() % 200);
    }
    for (const Weight limit : {-1, 0, 1, 77, 200, std::numeric_limits<Weight>::max()}) {
      NearEdges near;
      near.pick(to.data(), weight.data(), count, limit);
      std::size_t found = 0;
      Weight next = std::numeric_limits<Weight>::max();
      for (std::size_t at = 0; at < count; ++at) {
        if (weight[at] > limit) {
          next = std::min(next, weight[at]);
          continue;
        }
        ASSERT_LT(found, near.found);
        EXPECT_EQ(near.to[found], to[at]);
        EXPECT_EQ(near.weight[found], weight[at]);
        ++found;
      }
      EXPECT_EQ(near.found, found);
      EXPECT_EQ(near.next, next);
    }
  }
}

}  // namespace
}  // namespace atl::kernels
