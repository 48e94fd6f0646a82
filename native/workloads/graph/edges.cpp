#include "graph/edges.hpp"

#include <algorithm>
#include <cstddef>
#include <span>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "graph/kronecker.hpp"
#include "workloads/hash.hpp"

namespace atl::kernels {
namespace {

using workloads::kGolden;
using workloads::mixed;

// Calls fill(first, out) for parts that begin lines of memory.
template <class Fill>
void fill_parts(Team& team, Array<Edge>& edges, Fill&& fill) {
  constexpr std::size_t kPart = Kronecker::kAtATime;
  team.loop((edges.size() + kPart - 1) / kPart, 0, [&](std::size_t first, std::size_t last) {
    const std::size_t begin = first * kPart;
    const std::size_t end = std::min(last * kPart, edges.size());
    fill(begin, std::span(edges.data() + begin, end - begin));
  });
}

EdgeList filled(Team& team, const Memory& memory, Generator generator, int scale,
                std::uint64_t degree, std::uint64_t seed) {
  EdgeList list{Vertex{1} << scale, make_array<Edge>(memory, degree << scale), {}};
  fill_edges(team, generator, scale, seed, list.edges);
  return list;
}

[[gnu::always_inline]] inline Edge uniform_edge(std::uint64_t place, Vertex mask) {
  const std::uint64_t random = mixed(place);
  return {static_cast<Vertex>(random) & mask, static_cast<Vertex>(random >> 32) & mask};
}

#if defined(__x86_64__)
// Past the caches; in parts, which the compiler keeps in registers.
[[gnu::target("avx512f,avx512dq,prefer-vector-width=512")]] std::size_t stream_uniform(
    std::uint64_t place, Vertex mask, std::span<Edge> out) {
  constexpr std::size_t kLine = sizeof(__m512i) / sizeof(Edge);
  constexpr std::size_t kPart = 8 * kLine;
  std::size_t done = 0;
  for (; out.size() - done >= kPart; done += kPart) {
    alignas(__m512i) Edge part[kPart];
    for (std::size_t at = 0; at < kPart; ++at) {
      part[at] = uniform_edge(place + (done + at) * kGolden, mask);
    }
    for (std::size_t line = 0; line < kPart; line += kLine) {
      _mm512_stream_si512(reinterpret_cast<__m512i*>(&out[done + line]),
                          _mm512_load_si512(part + line));
    }
  }
  _mm_sfence();  // such stores are not ordered before what the caller writes next
  return done;
}
#endif

}  // namespace

void fill_edges(Team& team, Generator generator, int scale, std::uint64_t seed, Array<Edge>& out,
                Instructions instructions) {
  const bool best = instructions == Instructions::kBest;
  if (generator == Generator::kKronecker) {
    const Kronecker kronecker(scale, seed);
    return fill_parts(team, out, [&](std::uint64_t first, std::span<Edge> part) {
      best ? kronecker.fill(first, part) : kronecker.fill_plain(first, part);
    });
  }
  const Vertex mask = (Vertex{1} << scale) - 1;
  const std::uint64_t base = mixed(seed + kGolden);
  fill_parts(team, out, [&](std::uint64_t first, std::span<Edge> part) {
    std::size_t done = 0;
#if defined(__x86_64__)
    if (best && __builtin_cpu_supports("avx512dq")) {
      done = stream_uniform(base + first * kGolden, mask, part);
    }
#endif
    for (; done < part.size(); ++done) {
      part[done] = uniform_edge(base + (first + done) * kGolden, mask);
    }
  });
}

EdgeList kronecker_edges(Team& team, const Memory& memory, int scale, std::uint64_t degree,
                         std::uint64_t seed) {
  return filled(team, memory, Generator::kKronecker, scale, degree, seed);
}

EdgeList uniform_edges(Team& team, const Memory& memory, int scale, std::uint64_t degree,
                       std::uint64_t seed) {
  return filled(team, memory, Generator::kUniform, scale, degree, seed);
}

}  // namespace atl::kernels
