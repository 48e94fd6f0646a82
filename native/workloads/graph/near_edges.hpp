// Picks the short ones of a vertex's edges: sixteen at a time where the CPU has AVX-512.
#pragma once

#include <cstddef>

#include "graph/graph.hpp"

namespace atl::kernels {

struct NearEdges {
  static constexpr std::size_t kMost = 256;  // that are looked at together
  static constexpr std::size_t kLanes = 16;  // may be written beyond what was found

  // Picks those of `count` edges (kMost or fewer) whose weight is at most `limit`.
  void pick(const Vertex* all_to, const Weight* all_weight, std::size_t count, Weight limit);

  std::size_t found;
  Weight next;  // the least weight above `limit`, else the greatest that there is
  Vertex to[kMost + kLanes];
  Weight weight[kMost + kLanes];
};

}  // namespace atl::kernels
