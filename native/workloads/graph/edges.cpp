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
EdgeList filled(Team& team, const Memory& memory, int scale, std::uint64_t degree, Fill&& fill) {
  constexpr std::size_t kPart = Kronecker::kAtATime;
  EdgeList list{static_cast<Vertex>(1) << scale, make_array<Edge>(memory, degree << scale), {}};
  const std::size_t edges = list.edges.size();
  team.loop((edges + kPart - 1) / kPart, 0, [&](std::size_t first, std::size_t last) {
    const std::size_t begin = first * kPart;
    fill(begin, std::span(list.edges.data() + begin, std::min(last * kPart, edges) - begin));
  });
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

EdgeList kronecker_edges(Team& team, const Memory& memory, int scale, std::uint64_t degree,
                         std::uint64_t seed) {
  const Kronecker kronecker(scale, seed);
  return filled(team, memory, scale, degree,
                [&](std::uint64_t first, std::span<Edge> out) { kronecker.fill(first, out); });
}

EdgeList uniform_edges(Team& team, const Memory& memory, int scale, std::uint64_t degree,
                       std::uint64_t seed) {
  const Vertex mask = (Vertex{1} << scale) - 1;
  const std::uint64_t base = mixed(seed + kGolden);
  return filled(team, memory, scale, degree, [&](std::uint64_t first, std::span<Edge> out) {
    std::size_t done = 0;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512dq")) {
      done = stream_uniform(base + first * kGolden, mask, out);
    }
#endif
    for (; done < out.size(); ++done) {
      out[done] = uniform_edge(base + (first + done) * kGolden, mask);
    }
  });
}

}  // namespace atl::kernels
