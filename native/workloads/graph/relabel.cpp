#include "graph/relabel.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

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

template <bool kWithWeights>
class RowsSource {
 public:
  static constexpr bool kWeights = kWithWeights;
  static constexpr bool kSorted = true;

  RowsSource(const Graph& graph, const Order& order, Keep keep)
      : graph_(graph), order_(order), keep_(keep), sums_(graph.vertices / kStep + 1) {
    std::uint64_t sum = 0;
    for (Vertex name = 0; name < graph.vertices; ++name) {
      if (name % kStep == 0) sums_[name / kStep] = sum;
      sum += graph.out.degree(order.old_of[name]);
    }
  }

  [[nodiscard]] Vertex vertices() const { return graph_.vertices; }
  [[nodiscard]] std::size_t edges() const { return graph_.out.to.size(); }
  // Shares of about as many edges.
  [[nodiscard]] std::size_t first_of(std::size_t share, std::size_t shares) const {
    if (share == shares) return graph_.vertices;
    const std::uint64_t edge = edges() / shares * share;
    return static_cast<std::size_t>(std::upper_bound(sums_.begin(), sums_.end(), edge) -
                                    sums_.begin() - 1) *
           kStep;
  }
  template <class Use>
  void each(std::size_t first, std::size_t last, Use&& use) const {
    const Vertex* const new_of = order_.new_of.data();
    const Vertex* const to = graph_.out.to.data();
    for (std::size_t name = first; name < last; ++name) {
      const auto name_of_row = static_cast<Vertex>(name);
      const Vertex old = order_.old_of[name];
      for (std::uint64_t at = graph_.out.first[old]; at < graph_.out.first[old + 1]; ++at) {
        const Vertex other = new_of[to[at]];
        if (keep_ == Keep::kAll || other > name_of_row) use(other, name_of_row, at);
      }
    }
  }
  [[nodiscard]] Weight weight(std::size_t place) const { return (*graph_.out.weight)[place]; }

 private:
  static constexpr Vertex kStep = 64;
  const Graph& graph_;
  const Order& order_;
  const Keep keep_;
  std::vector<std::uint64_t> sums_;  // the edges before every 64th vertex
};

}  // namespace

Graph relabelled(Team& team, const Memory& memory, const Graph& graph, Keep keep) {
  const Order order = by_degree(team, memory, graph.out, graph.vertices);
  return {graph.vertices,
          graph.edges,
          graph.out.weight ? rows::build(team, memory, RowsSource<true>(graph, order, keep))
                           : rows::build(team, memory, RowsSource<false>(graph, order, keep)),
          {}};
}

}  // namespace atl::kernels
