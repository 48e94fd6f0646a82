#include "graph/build.hpp"

#include <algorithm>
#include <cstddef>

#include "graph/rows_builder.hpp"
#include "workloads/hash.hpp"

namespace atl::kernels {
namespace {

enum class Direction { kOut, kIn, kBoth };

template <bool kWithWeights>
class ListSource {
 public:
  static constexpr bool kWeights = kWithWeights;
  static constexpr bool kSorted = false;

  ListSource(const EdgeList& list, Direction direction)
      : list_(list),
        out_(direction != Direction::kIn),
        in_(direction != Direction::kOut),
        weights_(list.weights ? list.weights->data() : nullptr) {}

  [[nodiscard]] Vertex vertices() const { return list_.vertices; }
  [[nodiscard]] std::size_t edges() const { return list_.edges.size() * (out_ && in_ ? 2 : 1); }
  [[nodiscard]] std::size_t first_of(std::size_t share, std::size_t shares) const {
    const std::size_t all = list_.edges.size();
    return all / shares * share + std::min(share, all % shares);
  }
  template <class Use>
  void each(std::size_t first, std::size_t last, Use&& use) const {
    for (std::size_t place = first; place < last; ++place) {
      const auto [from, to] = list_.edges[place];
      if (from == to) continue;
      if (out_) use(from, to, place);
      if (in_) use(to, from, place);
    }
  }
  [[nodiscard]] Weight weight(std::size_t place) const { return weights_[place]; }
  [[nodiscard]] const Array<Weight>& weights() const { return *list_.weights; }

 private:
  const EdgeList& list_;
  const bool out_;
  const bool in_;
  const Weight* const weights_;
};

// From 1 to 255, by the pair of vertices: the same for both directions and all duplicates.
void add_weights(Team& team, const Memory& memory, Rows& rows, Vertex vertices,
                 std::uint64_t seed) {
  rows.weight.emplace(make_array<Weight>(memory, rows.to.size()));
  const std::uint64_t base = workloads::mixed(seed);
  team.loop(vertices, 0, [&](std::size_t begin, std::size_t end) {
    for (auto v = static_cast<Vertex>(begin); v < end; ++v) {
      for (std::uint64_t at = rows.first[v]; at < rows.first[v + 1]; ++at) {
        const Vertex to = rows.to[at];
        const std::uint64_t pair = std::uint64_t{std::max(v, to)} << 32 | std::min(v, to);
        const std::uint64_t random = workloads::mixed(base + pair * workloads::kGolden);
        (*rows.weight)[at] = static_cast<Weight>(1 + workloads::below(random, 255));
      }
    }
  });
}

Rows rows_of(Team& team, const Memory& memory, const EdgeList& list, Direction direction,
             const BuildOptions& options) {
  if (options.weights && list.weights) {
    return rows::build(team, memory, ListSource<true>(list, direction));
  }
  Rows made = rows::build(team, memory, ListSource<false>(list, direction));
  if (options.weights) add_weights(team, memory, made, list.vertices, options.seed);
  return made;
}

}  // namespace

std::uint64_t building_bytes(std::uint64_t vertices, std::uint64_t entries, int weight_bits) {
  const int bits = rows::key_bits(rows::bits_of(vertices)) + weight_bits;
  const std::uint64_t all = entries * (bits > 64 ? 16 : weight_bits == 0 && bits <= 32 ? 4 : 8);
  return all + all / rows::kRoomPart;
}

Graph build_graph(Team& team, const Memory& memory, const EdgeList& list,
                  const BuildOptions& options) {
  const bool directed = options.directed && !list.symmetric;
  const Direction direction = directed || list.both_ways ? Direction::kOut : Direction::kBoth;
  Graph graph{list.vertices, 0, rows_of(team, memory, list, direction, options), {}};
  graph.edges = directed ? graph.out.to.size() : graph.out.to.size() / 2;
  if (directed && options.incoming) {
    graph.in.emplace(rows_of(team, memory, list, Direction::kIn, options));
  }
  return graph;
}

}  // namespace atl::kernels
