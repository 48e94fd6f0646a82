// Breadth-first search: for each vertex that a source reaches, a neighbour that is one step nearer.
//
// The algorithm is direction-optimising (Beamer, Asanović and Patterson, "Direction-Optimizing
// Breadth-First Search", SC 2012): while the frontier has few edges, its vertices claim their
// neighbours (top-down); while it has many, each vertex that has not been reached looks for a
// neighbour in the frontier and stops at the first (bottom-up), with the paper's alpha and beta.
// What differs from GAP's code:
//
//  - Whether a vertex was reached is a bit, so all that is read at random has V / 8 bytes and stays
//    in a core's L2 (128 KiB at scale 20); parents are written once each and never read. Vertices
//    without neighbours count as reached after the first bottom-up step, which then never sees them
//    again.
//  - Bottom-up works on 64 vertices at a time: it fetches ahead the rows of the next 64 that have
//    not been reached, so that it does not wait for memory at each row's begin.
//
// Work is split by vertices: a level's in the order of the queue top-down, all in order of number
// bottom-up, so there a worker reads the rows of its part of the arrays, and no two pieces write
// the same word. Top-down claims bits atomically.
//
// Cost: O(V + E) time at most, in practice about one cache line of edges for each vertex; V / 64
// words for each bottom-up level; 4 bytes and 3 bits for each vertex beside the parents.
#pragma once

#include <span>

#include "graph/graph.hpp"
#include "workload.hpp"

namespace atl::kernels {

// For both kinds of rows. The parent of the source is the source, of vertices that it does not
// reach kNone. Of the neighbours that are one step nearer any may be the parent. `parents` has an
// element for each vertex, whatever is in it. A directed graph must have incoming rows.
template <class AnyRows>
void bfs(Team& team, const Memory& memory, const GraphOf<AnyRows>& graph, Vertex source,
         std::span<Vertex> parents);

// The same with vertices that are owned (messages.hpp), top-down only.
template <class AnyRows>
void bfs_by_messages(Team& team, const GraphOf<AnyRows>& graph, Vertex source,
                     std::span<Vertex> parents);

// Throws WrongAnswer unless `parents` is a tree of edges in which each vertex is as deep as by a
// serial search, and has all that it finds. Returns the number of vertices reached and the sum of
// their degrees. O(V + E), for directed graphs without incoming rows too.
struct Reached {
  std::uint64_t vertices = 0;
  std::uint64_t edges = 0;
};
template <class AnyRows>
Reached verify_bfs(const GraphOf<AnyRows>& graph, Vertex source, std::span<const Vertex> parents);

[[nodiscard]] const Workload& bfs_workload();

}  // namespace atl::kernels
