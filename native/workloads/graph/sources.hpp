// Where searches begin: at random vertices that have neighbours, as in GAP and Graph500.
#pragma once

#include <random>

#include "graph/graph.hpp"
#include "workload.hpp"

namespace atl::kernels {

// The same for the same seed and run, and any vertex if none has neighbours. Throws UsageFault if
// there is none.
inline Vertex pick_source(const Graph& graph, std::uint64_t seed, int run) {
  if (graph.vertices == 0) throw UsageFault("--graph: it has no vertices to search from");
  std::mt19937_64 random(seed * 1'000'003 + static_cast<std::uint64_t>(run));
  for (;;) {
    const auto source = static_cast<Vertex>(random() % graph.vertices);
    if (graph.out.degree(source) != 0 || graph.out.to.empty()) return source;
  }
}

}  // namespace atl::kernels
