// Graph500: build a graph from its edges (kernel 1), search it breadth-first (kernel 2) and find
// shortest paths in it (kernel 3) from random vertices, and validate all trees. A run is a search
// of kernel 2, with kernel 3 from the same vertex after it: `--runs 64` is the specification's
// number.
//
// By the specification (graph500.org, version 3). The kernels are build.hpp's, bfs.hpp's and
// sssp.hpp's. Kernel 3 also wants parents: for each vertex a neighbour whose distance and edge make
// its own, one more pass over the edges, in the time. The rate of a search is in traversed edges a
// second (TEPS): the edges of the list within the tree's component, duplicates and self loops
// counted, over its time; of all searches the harmonic mean counts.
//
// Weights are real in the specification, uniform from 0 to 1. Here they are multiples of 2^-24 (the
// spacing of single-precision numbers below 1) from 2^-24 to 1, so distances are exact integers and
// rule 2 below needs no tolerance.
//
// Cost of a validation: a pass over the vertices and one over the list of edges, both parallel, by
// the specification's rules and without the graph that kernel 1 built: O(V + E).
#pragma once

#include <cstdint>
#include <span>

#include "graph/edges.hpp"
#include "graph/graph.hpp"
#include "graph/sssp.hpp"
#include "workload.hpp"

namespace atl::kernels {

// Kronecker edges with weights from 1 to 2^24.
[[nodiscard]] EdgeList graph500_edges(Team& team, const Memory& memory, int scale,
                                      std::uint64_t degree, std::uint64_t seed);

// For each vertex that has a distance a neighbour on a shortest path, else kNone; of the source
// itself. Also kNone if no neighbour makes the distance, which is then wrong. Undirected graphs.
void shortest_path_tree(Team& team, const Graph& graph, Vertex source, const Distances& distances,
                        std::span<Vertex> parents);

// Throws WrongAnswer unless
//  1. the parents make a tree without cycles, of which the source is the root,
//  2. each edge of the tree is one level deep or, with distances, as long as they differ; these are
//     0 at the source, and nothing outside of the tree has one,
//  3. each edge of the list has levels that differ by at most one or, with distances, these by at
//     most its weight, or neither end is in the tree,
//  4. the tree has all vertices of the source's component, and
//  5. each parent is a neighbour in the list.
// Returns the number of edges of the list in the tree's component.
std::uint64_t validate_tree(Team& team, const EdgeList& list, Vertex source,
                            std::span<const Vertex> parents, const Distances* distances = nullptr);

[[nodiscard]] const Workload& graph500_workload();

}  // namespace atl::kernels
