// Builds a graph's rows from edges (Graph500's kernel 1): sorted, no duplicates, no self loops.
//
// Edges are partitioned once by ranges of their first vertex, small enough that a range is sorted
// in the cache by radix (Satish et al., "Fast sort on CPUs and GPUs", SIGMOD 2010): no atomic
// operation, no comparison, and memory is written in whole lines. What is moved are 4 or 8 bytes an
// entry, with its weight, as the range gives the first vertex's upper bits; 16 if that has no room.
// Time O(edges), but for a range with more than an eighth of a worker's edges, such as a star's,
// which is sorted in place by comparison, so that no worker needs room for it twice.
#pragma once

#include <cstdint>

#include "arrays.hpp"
#include "graph/edges.hpp"
#include "graph/graph.hpp"
#include "team.hpp"

namespace atl::kernels {

// What a kernel needs of its graph.
struct GraphNeeds {
  bool weights = false;
  bool incoming = false;      // of a directed graph the incoming rows too
  bool undirected = false;    // the kernel is not defined for others
  bool compressible = false;  // the kernel reads both kinds of rows
  // Bytes that the kernel and its check take beside the graph, from above: for each vertex, for
  // each direction of each edge, and for the latter besides with --variant messages.
  std::uint64_t of_vertex = 0;
  std::uint64_t of_edge = 0;
  std::uint64_t of_message = 0;
};

struct BuildOptions {
  bool directed = false;  // else, and in any case of a symmetric list, edges are kept both ways
  bool weights = false;   // the edges' own or, if they have none, from 1 to 255 by the seed
  bool incoming = false;  // of a directed graph
  std::uint64_t seed = 1;
};

// Bytes that building takes at most beside the list and the rows, but for some MB a worker.
// `weight_bits` are those of the list's greatest weight, 0 without weights.
[[nodiscard]] std::uint64_t building_bytes(std::uint64_t vertices, std::uint64_t entries,
                                           int weight_bits);

// Of edges that come more than once the smallest weight counts, as in GAP. Throws RuntimeFault if
// there is no memory.
[[nodiscard]] Graph build_graph(Team& team, const Memory& memory, const EdgeList& list,
                                const BuildOptions& options);

}  // namespace atl::kernels
