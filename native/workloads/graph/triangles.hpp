// Triangle count: how many sets of three vertices are all neighbours.
//
// Vertices are renamed by descending degree, and of each edge the direction to the lower name is
// kept (Schank and Wagner's "forward", WEA 2005; the renaming is part of the time, as in GAP). So
// each triangle u > v > w is found once, at u, as a w that is in the rows of both u and v; and no
// row has more than sqrt(2 E) vertices. What differs from GAP, which merges rows:
//
//  - While a worker is at u, a bitmap of its own has u's row. The bitmap has V bits, most of those
//    that are looked at are of low names, in L1.
//  - Hubs have bitmaps of their rows, too: every v whose row has at least one vertex in 256. Then
//    common neighbours are counted 512 a step (AND, VPOPCNTDQ), 64 on other CPUs. The bitmaps take
//    at most 8 times the bytes of their rows: 20 MB at scale 20, which stay in L3.
//  - For each edge the cheapest way is taken: bit by bit through the row of u or of v, or by words.
//
// Work is split by edges, not vertices. All that is shared is only read while counting.
//
// Cost: O(V + E) to rename; then for each edge (u, v) no more than the vertices of v's row.
#pragma once

#include <cstdint>

#include "arrays.hpp"
#include "graph/graph.hpp"
#include "workload.hpp"

namespace atl::kernels {

// The graph is undirected. Throws RuntimeFault if there is no memory.
[[nodiscard]] std::uint64_t count_triangles(Team& team, const Memory& memory, const Graph& graph);

// The same by another way, without new names, bitmaps or popcounts: bytes mark the neighbours of a
// vertex that come after it by degree and number, and are summed over the rows of these. About 20
// times the time of the above on a Kronecker graph.
[[nodiscard]] std::uint64_t count_triangles_again(Team& team, const Graph& graph);

[[nodiscard]] const Workload& triangles_workload();

}  // namespace atl::kernels
