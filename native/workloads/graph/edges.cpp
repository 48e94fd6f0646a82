#include "graph/edges.hpp"

#include <cstddef>

#include "workloads/hash.hpp"

namespace atl::kernels {
namespace {

using workloads::kGolden;
using workloads::mixed;

EdgeList empty_list(const Memory& memory, int scale, std::uint64_t degree) {
  return {static_cast<Vertex>(1) << scale, make_array<Edge>(memory, degree << scale), {}};
}

// A random order of [0, 2^scale): steps that can each be undone.
class Renaming {
 public:
  Renaming(int scale, std::uint64_t seed)
      : mask_((Vertex{1} << scale) - 1), shift_((scale + 1) / 2), add_(Vertex(mixed(seed))) {}
  [[nodiscard]] Vertex of(Vertex v) const {
    v = ((v + add_) * 0x9e3779b1u) & mask_;
    v ^= v >> shift_;
    v = (v * 0x85ebca6bu) & mask_;
    v ^= v >> shift_;
    return (v * 0xc2b2ae35u) & mask_;
  }

 private:
  Vertex mask_;
  int shift_;
  Vertex add_;
};

}  // namespace

EdgeList kronecker_edges(Team& team, const Memory& memory, int scale, std::uint64_t degree,
                         std::uint64_t seed) {
  EdgeList list = empty_list(memory, scale, degree);
  const Renaming renaming(scale, seed);
  const std::uint64_t base = mixed(seed + kGolden);
  team.loop(list.edges.size(), 0, [&](std::size_t first, std::size_t last) {
    for (std::size_t i = first; i < last; ++i) {
      std::uint64_t state = mixed(base + i * kGolden);
      Vertex from = 0;
      Vertex to = 0;
      for (int level = 0; level < scale; ++level) {
        state = mixed(state + kGolden);
        const double at = static_cast<double>(state >> 11) * 0x1p-53;
        from = from << 1 | (at >= 0.76 ? 1u : 0u);
        to = to << 1 | ((at >= 0.57 && at < 0.76) || at >= 0.95 ? 1u : 0u);
      }
      list.edges[i] = {renaming.of(from), renaming.of(to)};
    }
  });
  return list;
}

EdgeList uniform_edges(Team& team, const Memory& memory, int scale, std::uint64_t degree,
                       std::uint64_t seed) {
  EdgeList list = empty_list(memory, scale, degree);
  const Vertex mask = (Vertex{1} << scale) - 1;
  const std::uint64_t base = mixed(seed + kGolden);
  team.loop(list.edges.size(), 0, [&](std::size_t first, std::size_t last) {
    for (std::size_t i = first; i < last; ++i) {
      const std::uint64_t random = mixed(base + i * kGolden);
      list.edges[i] = {Vertex(random) & mask, Vertex(random >> 32) & mask};
    }
  });
  return list;
}

}  // namespace atl::kernels
