// Where searches begin: at random vertices that have neighbours, as in GAP and Graph500.
#pragma once

#include <random>

#include "graph/graph.hpp"

namespace atl::kernels {

// The same for the same seed and run, and any vertex if none has neighbours.
template <class AnyRows>
Vertex pick_source(const GraphOf<AnyRows>& graph, std::uint64_t seed, int run) {
  std::mt19937_64 random(seed * 1'000'003 + static_cast<std::uint64_t>(run));
  for (;;) {
    const auto source = static_cast<Vertex>(random() % graph.vertices);
    if (graph.out.degree(source) != 0 || graph.out.entries() == 0) return source;
  }
}

}  // namespace atl::kernels
