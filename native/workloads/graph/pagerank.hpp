// PageRank: how often a walk is at a vertex that follows a random edge with probability 0.85 and
// else jumps to any vertex. As in GAP, what a vertex without outgoing edges has is lost, and the
// answer is there when a sweep changes the scores by less than a tolerance in all.
//
// Each sweep pulls: a vertex adds what its incoming neighbours give, their score by their degree.
// New scores count at once (Gauss and Seidel's way, as in GAP's `pr`), so fewer sweeps are needed.
// What differs from GAP:
//
//  - The scores of an undirected graph begin where a walk that never jumps would end, by degree,
//    plus one step of jumps, and evenly where two vertices have only each other. GAP begins with
//    equal scores, and needs one to three sweeps more.
//  - A row has four sums, so that its additions need not wait for each other.
//
// Work is split by edges (loops.hpp), so a worker reads the rows of its part of the arrays, and
// writes its part of the scores; what is given is read from all parts, and the 4 bytes of the
// vertices that most edges lead to stay in each core's caches. Scores are floats; the sum of a row
// is a double of blocks, as a hub's row is too long for floats alone.
//
// Cost: O(V + E) for each sweep; 8 bytes for each vertex.
#pragma once

#include <cstdint>
#include <span>

#include "graph/graph.hpp"
#include "workload.hpp"

namespace atl::kernels {

inline constexpr double kTolerance = 1e-4;  // GAP's

struct Sweeps {
  int count = 0;
  double change = 0;  // of all scores together, by the last
};

// For both kinds of rows. `scores` has an element for each vertex, whatever is in it.
template <class AnyRows>
Sweeps pagerank(Team& team, const Memory& memory, const GraphOf<AnyRows>& graph,
                std::span<float> scores);

// The same with vertices that are owned (messages.hpp), by pushes that count in the next sweep.
template <class AnyRows>
Sweeps pagerank_by_messages(Team& team, const GraphOf<AnyRows>& graph, std::span<float> scores);

// By how much one more sweep, in doubles and by one worker, changes the scores. Throws WrongAnswer
// if that is not below the tolerance.
template <class AnyRows>
double verify_pagerank(const GraphOf<AnyRows>& graph, std::span<const float> scores);

[[nodiscard]] const Workload& pagerank_workload();

}  // namespace atl::kernels
