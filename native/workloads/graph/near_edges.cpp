#include "graph/near_edges.hpp"

#include <algorithm>
#include <limits>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace atl::kernels {
namespace {

constexpr Weight kMostWeight = std::numeric_limits<Weight>::max();

// Without branches: whether an edge is short is hard to foresee.
void pick_plain(NearEdges& near, const Vertex* to, const Weight* weight, std::size_t count,
                Weight limit) {
  near.found = 0;
  near.next = kMostWeight;
  for (std::size_t at = 0; at < count; ++at) {
    near.to[near.found] = to[at];
    near.weight[near.found] = weight[at];
    near.found += weight[at] <= limit ? 1 : 0;
    near.next = std::min(near.next, weight[at] > limit ? weight[at] : kMostWeight);
  }
}

#if defined(__x86_64__)
__attribute__((target("avx512f"))) void pick_avx512(NearEdges& near, const Vertex* to,
                                                    const Weight* weight, std::size_t count,
                                                    Weight limit) {
  constexpr std::size_t kLanes = NearEdges::kLanes;
  near.found = 0;
  const __m512i limits = _mm512_set1_epi32(limit);
  __m512i next = _mm512_set1_epi32(kMostWeight);
  for (std::size_t at = 0; at < count; at += kLanes) {
    const std::size_t left = std::min(count - at, kLanes);
    const auto all = static_cast<__mmask16>((1u << left) - 1);
    const __m512i weights = _mm512_maskz_loadu_epi32(all, weight + at);
    const __mmask16 taken = _mm512_mask_cmple_epi32_mask(all, weights, limits);
    next = _mm512_mask_min_epi32(next, static_cast<__mmask16>(all & ~taken), next, weights);
    if (taken == 0) continue;
    // Not a compressing store, which is slow on Zen 4.
    const __m512i targets = _mm512_maskz_loadu_epi32(all, to + at);
    _mm512_storeu_si512(near.to + near.found, _mm512_maskz_compress_epi32(taken, targets));
    _mm512_storeu_si512(near.weight + near.found, _mm512_maskz_compress_epi32(taken, weights));
    near.found += static_cast<std::size_t>(__builtin_popcount(taken));
  }
  Weight lanes[kLanes];
  _mm512_storeu_si512(lanes, next);
  near.next = *std::min_element(lanes, lanes + kLanes);
}

const auto pick_best = __builtin_cpu_supports("avx512f") ? pick_avx512 : pick_plain;
#else
constexpr auto pick_best = pick_plain;
#endif

}  // namespace

void NearEdges::pick(const Vertex* all_to, const Weight* all_weight, std::size_t count,
                     Weight limit) {
  pick_best(*this, all_to, all_weight, count, limit);
}

}  // namespace atl::kernels
