// A graph in compressed sparse rows: for each vertex the vertices that its edges lead to, sorted,
// each once, and no vertex itself.
//
// Its arrays are of the kind that the user chose; the part of a rank is near its worker, so a loop
// over vertices by `Team::loop` reads near memory.
//
// A kernel is a template over the kind of rows, Rows or CompressedRows (compressed_rows.hpp), of
// which it uses what both have: `first`, `entries`, `degree`, `front`, `until`, and `fetch_begin`
// and `fetch` some vertices ahead.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "arrays.hpp"

namespace atl::kernels {

using Vertex = std::uint32_t;                // so at most 2^32 - 1 vertices
using Weight = std::int32_t;                 // at least 1
inline constexpr Vertex kNone = ~Vertex{0};  // no vertex

struct Edge {
  Vertex from;
  Vertex to;
};

// One direction of the edges.
struct Rows {
  Array<std::uint64_t> first;  // vertices + 1; first[v] is where v's begin in `to`
  Array<Vertex> to;
  std::optional<Array<Weight>> weight;  // as `to`

  [[nodiscard]] std::span<const Vertex> of(Vertex v) const {
    return {to.data() + first[v], static_cast<std::size_t>(first[v + 1] - first[v])};
  }
  [[nodiscard]] std::span<const Weight> weights_of(Vertex v) const {
    return {weight->data() + first[v], static_cast<std::size_t>(first[v + 1] - first[v])};
  }
  [[nodiscard]] std::uint64_t entries() const { return to.size(); }
  [[nodiscard]] std::uint64_t degree(Vertex v) const { return first[v + 1] - first[v]; }
  // Of memory, without weights.
  [[nodiscard]] std::uint64_t bytes() const {
    return first.size() * sizeof(std::uint64_t) + to.size() * sizeof(Vertex);
  }

  // The first two of v's row; v itself for each that is not there. Whatever the degree, it loads
  // another's edge instead of branching. Not for rows without any entry.
  [[nodiscard]] std::pair<Vertex, Vertex> front(Vertex v) const {
    const Vertex one = to[std::min<std::uint64_t>(first[v], to.size() - 1)];
    const Vertex two = to[std::min<std::uint64_t>(first[v] + 1, to.size() - 1)];
    return {degree(v) > 0 ? one : v, degree(v) > 1 ? two : v};
  }

  // Calls use(span) on pieces of v's row in order until one returns true, and returns whether one
  // did. Here the row is one piece.
  template <class Use>
  bool until(Vertex v, Use&& use) const {
    return use(of(v));
  }

  void fetch_begin(Vertex v) const { __builtin_prefetch(&first[v]); }
  void fetch(Vertex v) const { __builtin_prefetch(to.data() + first[v]); }
};

// Calls use(vertex) for each of v's row.
template <class AnyRows, class Use>
void each_of(const AnyRows& rows, Vertex v, Use&& use) {
  rows.until(v, [&](std::span<const Vertex> piece) {
    for (const Vertex to : piece) use(to);
    return false;
  });
}

template <class AnyRows>
struct GraphOf {
  Vertex vertices = 0;
  std::uint64_t edges = 0;  // of an undirected graph each is counted once, though kept twice
  AnyRows out;
  std::optional<AnyRows> in;  // nullopt: undirected, `out` has both directions

  [[nodiscard]] const AnyRows& incoming() const { return in ? *in : out; }
};
using Graph = GraphOf<Rows>;

}  // namespace atl::kernels
