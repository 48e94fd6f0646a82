#include "graph/relabel.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "graph/loops.hpp"
#include "graph/rows_builder.hpp"

namespace atl::kernels {
namespace {

struct Order {
  Array<Vertex> old_of;  // by new name
  Array<Vertex> new_of;  // by old name
};

// A counting sort; the few vertices with more edges than it counts are sorted by comparison.
Order by_degree(Team& team, const Memory& memory, const Rows& rows, Vertex vertices) {
  constexpr std::uint64_t kMany = 4096;
  const std::size_t shares =
      std::clamp<std::size_t>(vertices >> 14, 1, static_cast<std::size_t>(team.workers()) * 4);
  const auto first_of = [&](std::size_t share) {
    return static_cast<Vertex>(std::uint64_t{vertices} * share / shares);
  };
  // Descending: class 0 has the vertices of `kMany` edges and more.
  const auto class_of = [&](Vertex v) { return kMany - std::min(rows.degree(v), kMany); };
  std::vector<std::vector<Vertex>> at(shares, std::vector<Vertex>(kMany + 1));
  team.loop(shares, 1, [&](std::size_t first, std::size_t last) {
    for (Vertex v = first_of(first); v < first_of(last); ++v) {
      while (v >= first_of(first + 1)) ++first;
      ++at[first][class_of(v)];
    }
  });
  Vertex sum = 0;
  Vertex many = 0;
  for (std::size_t degree = 0; degree <= kMany; ++degree) {
    for (std::vector<Vertex>& counts : at) sum += std::exchange(counts[degree], sum);
    if (degree == 0) many = sum;
  }
  Order order{make_array<Vertex>(memory, vertices), make_array<Vertex>(memory, vertices)};
  team.loop(shares, 1, [&](std::size_t first, std::size_t last) {
    for (Vertex v = first_of(first); v < first_of(last); ++v) {
      while (v >= first_of(first + 1)) ++first;
      order.old_of[at[first][class_of(v)]++] = v;
    }
  });
  std::stable_sort(order.old_of.data(), order.old_of.data() + many, [&](Vertex left, Vertex right) {
    return rows.degree(left) > rows.degree(right);
  });
  team.loop(vertices, 0, [&](std::size_t first, std::size_t last) {
    for (std::size_t name = first; name < last; ++name) {
      order.new_of[order.old_of[name]] = static_cast<Vertex>(name);
    }
  });
  return order;
}

// The graph's edges under new names, row after row in the new order.
struct Renamed {
  Array<std::uint64_t> first;  // as Rows::first
  Array<Vertex> to;            // not sorted
};

Renamed renamed(Team& team, const Memory& memory, const Rows& rows, const Order& order) {
  const std::size_t vertices = order.old_of.size();
  Renamed made{make_array<std::uint64_t>(memory, vertices + 1),
               make_array<Vertex>(memory, rows.to.size())};
  for (std::size_t name = 0; name < vertices; ++name) {
    made.first[name + 1] = made.first[name] + rows.degree(order.old_of[name]);
  }
  loop_by_edges(team, made.first, [&](Vertex begin, Vertex end) {
    for (Vertex name = begin; name < end; ++name) {
      const auto row = rows.of(order.old_of[name]);
      Vertex* const out = made.to.data() + made.first[name];
      for (std::size_t at = 0; at < row.size(); ++at) out[at] = order.new_of[row[at]];
    }
  });
  return made;
}

template <bool kWithWeights>
class RowsSource {
 public:
  static constexpr bool kWeights = kWithWeights;
  static constexpr bool kSorted = true;

  RowsSource(const Graph& graph, const Order& order, const Renamed& renamed, Keep keep)
      : graph_(graph), order_(order), renamed_(renamed), keep_(keep) {}

  [[nodiscard]] Vertex vertices() const { return graph_.vertices; }
  [[nodiscard]] std::size_t edges() const { return renamed_.to.size(); }
  // Shares of about as many edges.
  [[nodiscard]] std::size_t first_of(std::size_t share, std::size_t shares) const {
    if (share == shares) return graph_.vertices;
    const std::uint64_t* const first = renamed_.first.data();
    const std::uint64_t edge = edges() / shares * share;
    return static_cast<std::size_t>(std::lower_bound(first, first + graph_.vertices, edge) - first);
  }
  template <class Use>
  void each(std::size_t begin, std::size_t end, Use&& use) const {
    for (std::size_t name = begin; name < end; ++name) {
      const std::uint64_t first = renamed_.first[name];
      const std::uint64_t old = graph_.out.first[order_.old_of[name]];
      for (std::uint64_t at = first; at < renamed_.first[name + 1]; ++at) {
        const Vertex other = renamed_.to[at];
        if (keep_ == Keep::kAll || other > name) {
          use(other, static_cast<Vertex>(name), old + (at - first));
        }
      }
    }
  }
  [[nodiscard]] Weight weight(std::size_t place) const { return weights()[place]; }
  [[nodiscard]] const Array<Weight>& weights() const { return *graph_.out.weight; }

 private:
  const Graph& graph_;
  const Order& order_;
  const Renamed& renamed_;
  const Keep keep_;
};

}  // namespace

Graph relabelled(Team& team, const Memory& memory, const Graph& graph, Keep keep) {
  const Order order = by_degree(team, memory, graph.out, graph.vertices);
  const Renamed names = renamed(team, memory, graph.out, order);
  return {graph.vertices,
          graph.edges,
          graph.out.weight
              ? rows::build(team, memory, RowsSource<true>(graph, order, names, keep))
              : rows::build(team, memory, RowsSource<false>(graph, order, names, keep)),
          {}};
}

}  // namespace atl::kernels
