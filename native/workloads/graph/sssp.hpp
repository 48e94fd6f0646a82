// Shortest paths: the distance of each vertex from a source along weighted edges.
//
// The algorithm is delta-stepping (Meyer and Sanders, Journal of Algorithms 49, 2003) with two of
// the ideas of Chakaravarthy et al. ("Scalable Single Source Shortest Path Algorithms for Massively
// Parallel Systems", IPDPS 2014), which leave out most relaxations:
//
//  - Distances are settled in windows of many buckets. Within a window an edge is relaxed only
//    if it ends within; longer ones wait. Weights lie by themselves, so an edge that waits costs 4
//    bytes of reading in order, 16 of them an instruction (AVX-512, where there is), and no look at
//    its end.
//  - When less than a third of the edges are at vertices beyond the window, each of these pulls its
//    distance from its neighbours within, and the edges that wait are forgotten: on a Kronecker
//    graph 9 in 10 of all. Only those of them that have a neighbour beyond, too, are expanded after
//    that. Until then, the next window begins with the vertices whose edges wait. It is twice as
//    wide if they have a quarter of the graph's edges, so edges are not read again and again.
//
// Work is split by the vertices of a bucket, in pieces of 32; a worker appends what it reaches to
// buckets of its own, which whoever is free takes over later. Nothing stays on a chiplet but a
// worker's buckets: distances are shared words with an atomic minimum. Rows are fetched ahead.
// Pulling is split by vertices in order and writes only the piece's own.
//
// Cost: O(V + E) for each window, of which there are O(log(longest distance / delta)), and what
// delta-stepping relaxes twice; 4 bytes for each vertex, and 4 for each entry of a bucket. A
// distance of 2^31 or more does not fit: then the search begins again with 8 bytes for each.
#pragma once

#include <cstdint>
#include <variant>

#include "arrays.hpp"
#include "graph/graph.hpp"
#include "workload.hpp"

namespace atl::kernels {

// Of vertices that cannot be reached.
template <class Distance>
inline constexpr Distance kFar = ~Distance{0};

using Distances = std::variant<Array<std::uint32_t>, Array<std::uint64_t>>;

// kFar<std::uint64_t> of vertices that cannot be reached.
[[nodiscard]] std::uint64_t distance_of(const Distances& distances, Vertex v);

// `delta` is the width of a bucket, from 1 to 2^31; the answer does not depend on it. The graph has
// weights, and both directions of its edges. Throws RuntimeFault if there is no memory.
[[nodiscard]] Distances sssp(Team& team, const Memory& memory, const Graph& graph, Vertex source,
                             std::uint64_t delta);

// The same by batched messages to the owners of vertices (messages.hpp), in supersteps: each tells
// the neighbours of all vertices whose distance has changed (Bellman and Ford).
[[nodiscard]] Distances sssp_by_messages(Team& team, const Memory& memory, const Graph& graph,
                                         Vertex source);

// 1/64 of the mean weight of a sample of edges: GAP's 2 for its weights from 1 to 255.
[[nodiscard]] std::uint64_t default_delta(const Graph& graph);

// Throws WrongAnswer unless each vertex has the least of its neighbours' distances plus an edge,
// and the source 0. As weights are at least 1, only the true distances do. O(V + E), parallel.
void verify_sssp(Team& team, const Graph& graph, Vertex source, const Distances& distances);

[[nodiscard]] const Workload& sssp_workload();

}  // namespace atl::kernels
