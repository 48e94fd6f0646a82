// A graph in compressed sparse rows: for each vertex the vertices that its edges lead to, sorted,
// each once, and no vertex itself.
//
// Its arrays are of the kind that the user chose; the part of a rank is near its worker, so a loop
// over vertices by `Team::loop` reads near memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

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
  [[nodiscard]] std::uint64_t degree(Vertex v) const { return first[v + 1] - first[v]; }
};

struct Graph {
  Vertex vertices = 0;
  std::uint64_t edges = 0;  // of an undirected graph each is counted once, though kept twice
  Rows out;
  std::optional<Rows> in;  // nullopt: undirected, `out` has both directions

  [[nodiscard]] const Rows& incoming() const { return in ? *in : out; }
};

}  // namespace atl::kernels
