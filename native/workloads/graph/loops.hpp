// Loops over vertices in pieces of about as much work, however unlike their degrees are.
//
// A vertex counts as one plus its edges. As `to` is partitioned by bytes, a scheduler that gives
// its workers neighbouring shares of a loop (atoll, openmp's static, tbb at first) gives them about
// the vertices whose edges are on their node.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "graph/graph.hpp"
#include "team.hpp"

namespace atl::kernels {

// Calls piece(first, last) on ranges of vertices that cover [0, vertices). Two binary searches for
// each piece.
template <class Piece>
void loop_by_edges(Team& team, const Array<std::uint64_t>& firsts, Piece&& piece) {
  const std::uint64_t* const first = firsts.data();
  const std::size_t vertices = firsts.size() - 1;
  // The vertices before `work`.
  const auto vertex_at = [=](std::size_t work) {
    std::size_t low = 0;
    std::size_t high = vertices;
    while (low < high) {
      const std::size_t middle = low + (high - low) / 2;
      if (first[middle] + middle < work) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return static_cast<Vertex>(low);
  };
  team.loop(first[vertices] + vertices, 0, [&](std::size_t begin, std::size_t end) {
    const Vertex from = vertex_at(begin);
    const Vertex to = vertex_at(end);
    if (from < to) piece(from, to);
  });
}
template <class Piece>
void loop_by_edges(Team& team, const Rows& rows, Piece&& piece) {
  loop_by_edges(team, rows.first, std::forward<Piece>(piece));
}

}  // namespace atl::kernels
