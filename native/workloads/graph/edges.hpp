// Edges in no order, from which rows are built (build.hpp): what generators and readers make.
//
// Kronecker's are Graph500's (graph500.org, "Specification", section 3.2): each level of the
// adjacency matrix chooses a quadrant with probabilities 0.57, 0.19, 0.19 and 0.05, and the
// vertices are renamed at random. Uniform ones are Erdős and Rényi's G(n, m). Edge i depends on the
// seed and on i alone, so the edges are the same for any number of workers.
#pragma once

#include <cstdint>
#include <optional>

#include "arrays.hpp"
#include "graph/graph.hpp"
#include "team.hpp"

namespace atl::kernels {

struct EdgeList {
  Vertex vertices = 0;
  Array<Edge> edges;                     // may have duplicates and self loops
  std::optional<Array<Weight>> weights;  // as `edges`
  bool symmetric = false;                // the graph is undirected in any case
  bool both_ways = false;                // and each edge is there in both directions
};

enum class Generator { kKronecker, kUniform };
enum class Instructions { kBest, kPlain };  // kPlain: without vectors, slow

// Edges 0 to out.size() - 1 over 2^scale vertices; scale from 1 to 31.
void fill_edges(Team& team, Generator generator, int scale, std::uint64_t seed, Array<Edge>& out,
                Instructions instructions = Instructions::kBest);

// `degree` << scale edges in new memory.
[[nodiscard]] EdgeList kronecker_edges(Team& team, const Memory& memory, int scale,
                                       std::uint64_t degree, std::uint64_t seed);
[[nodiscard]] EdgeList uniform_edges(Team& team, const Memory& memory, int scale,
                                     std::uint64_t degree, std::uint64_t seed);

}  // namespace atl::kernels
