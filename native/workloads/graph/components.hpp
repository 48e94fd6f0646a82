// Connected components: the same label for vertices that a path of edges joins, whatever their
// directions; the label is the smallest of their numbers.
//
// The algorithm is Afforest (Sutton, Ben-Nun and Barak, "Optimizing Parallel Graph Connectivity
// Computation via Subgraph Sampling", IPDPS 2018): a forest of vertices that name each other, in
// which the roots of trees are linked by compare-and-swap. Two neighbours of each vertex are linked
// first. They nearly always join the giant component, which a sample then finds, so the remaining
// edges are looked at for the few vertices outside of it only. What differs from GAP's code:
//
//  - A vertex begins by naming its first neighbour if that has a smaller number, which needs no
//    link and reads nothing at random; the second neighbour, from the same line, is noted
//    meanwhile.
//  - Trees are not flattened as passes of their own but as vertices are linked, and what is linked
//    is fetched ahead. Vertices without edges are common, so no branch depends on that.
//
// Work is split by vertices in order of number, so a worker reads the rows of its part of the
// arrays. The names are read and written everywhere, but mostly those of few roots, of small
// number, which stay in each core's caches.
//
// Cost: O(V + E) links at most, in practice about a line of edges for each vertex; 8 bytes for each
// vertex.
#pragma once

#include <cstdint>
#include <span>

#include "graph/graph.hpp"
#include "workload.hpp"

namespace atl::kernels {

// For both kinds of rows. `labels` has an element for each vertex, whatever is in it. A directed
// graph must have incoming rows.
template <class AnyRows>
void components(Team& team, const Memory& memory, const GraphOf<AnyRows>& graph,
                std::span<Vertex> labels);

// The same with vertices that are owned (messages.hpp): the smallest label spreads along edges.
template <class AnyRows>
void components_by_messages(Team& team, const GraphOf<AnyRows>& graph, std::span<Vertex> labels);

// The number of components. Throws WrongAnswer unless the labels are those of a serial search.
// O(V + E).
template <class AnyRows>
std::uint64_t verify_components(const GraphOf<AnyRows>& graph, std::span<const Vertex> labels);

[[nodiscard]] const Workload& components_workload();

}  // namespace atl::kernels
