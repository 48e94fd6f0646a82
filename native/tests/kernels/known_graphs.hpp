// Graphs on which kernels are tested: of known shape, and at random.
#pragma once

#include <algorithm>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "graph/compressed_rows.hpp"
#include "kernels/graphs.hpp"

namespace atl::kernels {

struct KnownGraph {
  std::string name;
  Vertex vertices;
  std::vector<Edge> edges;
};

inline std::vector<KnownGraph> known_graphs() {
  std::vector<KnownGraph> all = {
      {"one vertex", 1, {}},
      {"two vertices apart", 2, {}},
      {"an edge", 2, {{1, 0}}},
      {"64 alone", 64, {}},
      {"two triangles", 6, {{0, 1}, {1, 2}, {2, 0}, {3, 4}, {4, 5}, {5, 3}}},
  };
  const auto add = [&](std::string name, Vertex vertices, auto&& edge, std::size_t edges) {
    KnownGraph graph{std::move(name), vertices, {}};
    for (std::size_t at = 0; at < edges; ++at) graph.edges.push_back(edge(static_cast<Vertex>(at)));
    all.push_back(std::move(graph));
  };
  add("path", 130, [](Vertex v) { return Edge{v, v + 1}; }, 129);
  add("path backwards", 130, [](Vertex v) { return Edge{129 - v, 128 - v}; }, 129);
  add("star", 3000, [](Vertex v) { return Edge{2199, v}; }, 2199);
  add("ring", 65, [](Vertex v) { return Edge{v, (v + 1) % 65}; }, 65);
  add("complete", 70, [](Vertex v) { return Edge{v / 70, v % 70}; }, 70 * 70);
  std::mt19937 random(1);
  constexpr Vertex kVertices = 1500;
  // Some vertices have many edges, many have few or none.
  const auto some = [&](Vertex) {
    return Edge{static_cast<Vertex>(random() % (random() % kVertices + 1)),
                static_cast<Vertex>(random() % kVertices)};
  };
  add("sparse", kVertices, some, kVertices / 2);
  add("dense", kVertices, some, std::size_t{kVertices} * 10);
  return all;
}

inline Graph build(const KnownGraph& known, bool directed) {
  std::optional<Graph> graph;
  with_team("os", 1, [&](Team& team, const Memory& memory) {
    EdgeList list{known.vertices, make_array<Edge>(memory, known.edges.size()), {}};
    std::copy(known.edges.begin(), known.edges.end(), list.edges.begin());
    graph.emplace(build_graph(team, memory, list, {.directed = directed, .incoming = directed}));
  });
  return *std::move(graph);
}

// Calls test(team, memory, graph, small, where) for graphs both undirected and directed; `small`
// has the same rows, compressed. Each scheduler meets each graph with one of its numbers of workers
// (one that has a single number meets a third): loops end with a barrier, which takes long where
// more threads run than there are CPUs. A task may change its thread, so `where` is for messages in
// place of SCOPED_TRACE.
template <class Test>
void on_known_graphs(Test&& test) {
  struct Case {
    std::string name;
    Graph graph;
    CompressedGraph small;
  };
  std::vector<Case> cases;
  for (const KnownGraph& known : known_graphs()) {
    for (const bool directed : {false, true}) {
      with_team("os", 1, [&](Team& team, const Memory& memory) {
        cases.push_back({known.name + (directed ? ", directed" : ""), build(known, directed),
                         compressed(team, memory, build(known, directed))});
      });
    }
  }
  std::size_t turn = 0;
  for (const auto& [scheduler, workers] : teams()) {
    const std::string who = scheduler + ", " + std::to_string(workers) + " workers, ";
    with_team(scheduler, workers, [&](Team& team, const Memory& memory) {
      for (std::size_t at = turn++ % 3; at < cases.size(); at += 3) {
        const auto& [name, graph, small] = cases[at];
        test(team, memory, graph, small, who + name);
      }
    });
  }
}

}  // namespace atl::kernels
