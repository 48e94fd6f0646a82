#include "vectors.hpp"

namespace atl::kernels {
namespace {

// Threads may race on a model by these loops (Hogwild). A load or store of aligned vectors never
// tears a float on a CPU that has such instructions; C++ has no word for that, and an atomic access
// for each float would be no vector.
#define ATOLL_INLINED [[gnu::always_inline, gnu::no_sanitize("thread")]] inline
#define ATOLL_LOOP [[gnu::no_sanitize("thread")]] static

using Lane = float __attribute__((vector_size(kLane * sizeof(float)), may_alias));

ATOLL_INLINED const Lane& lane(const float* vector, std::size_t at) {
  return *reinterpret_cast<const Lane*>(vector + at);
}

template <bool kDistance>
ATOLL_INLINED void add_term(Lane& sum, const float* left, const float* right, std::size_t at) {
  if constexpr (kDistance) {
    const Lane apart = lane(left, at) - lane(right, at);
    sum += apart * apart;
  } else {
    sum += lane(left, at) * lane(right, at);
  }
}

template <bool kDistance>
ATOLL_INLINED float sum_of(const float* left, const float* right, std::size_t size) {
  Lane sums[4] = {};  // so that an addition need not wait for the one before
  std::size_t at = 0;
  for (; at + 4 * kLane <= size; at += 4 * kLane) {
    add_term<kDistance>(sums[0], left, right, at);
    add_term<kDistance>(sums[1], left, right, at + kLane);
    add_term<kDistance>(sums[2], left, right, at + 2 * kLane);
    add_term<kDistance>(sums[3], left, right, at + 3 * kLane);
  }
  for (; at < size; at += kLane) add_term<kDistance>(sums[0], left, right, at);
  const Lane all = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  // By halves, as a chain of 16 additions takes longer than the loop over 128 elements.
  const auto eight = __builtin_shufflevector(all, all, 0, 1, 2, 3, 4, 5, 6, 7) +
                     __builtin_shufflevector(all, all, 8, 9, 10, 11, 12, 13, 14, 15);
  const auto four = __builtin_shufflevector(eight, eight, 0, 1, 2, 3) +
                    __builtin_shufflevector(eight, eight, 4, 5, 6, 7);
  return (four[0] + four[2]) + (four[1] + four[3]);
}

ATOLL_INLINED void distances_of(const float* rows, std::size_t count, const float* center,
                                std::size_t size, float* distances) {
  for (std::size_t row = 0; row < count; ++row) {
    distances[row] = sum_of<true>(rows + row * size, center, size);
  }
}

ATOLL_INLINED void add_to(float* sum, float factor, const float* vector, std::size_t size,
                          const float* next) {
  for (std::size_t at = 0; at < size; at += kLane) {
    __builtin_prefetch(next + at, 0, 2);
    *reinterpret_cast<Lane*>(sum + at) += factor * lane(vector, at);
  }
}

#define ATOLL_LOOPS(NAME, TARGET)                                                               \
  struct NAME {                                                                                 \
    TARGET ATOLL_LOOP float dot(const float* left, const float* right, std::size_t size) {      \
      return sum_of<false>(left, right, size);                                                  \
    }                                                                                           \
    TARGET ATOLL_LOOP float distance(const float* left, const float* right, std::size_t size) { \
      return sum_of<true>(left, right, size);                                                   \
    }                                                                                           \
    TARGET ATOLL_LOOP void distances(const float* rows, std::size_t count, const float* center, \
                                     std::size_t size, float* distances) {                      \
      distances_of(rows, count, center, size, distances);                                       \
    }                                                                                           \
    TARGET ATOLL_LOOP void add(float* sum, float factor, const float* vector, std::size_t size, \
                               const float* next) {                                             \
      add_to(sum, factor, vector, size, next);                                                  \
    }                                                                                           \
    static constexpr VectorLoops kAll = {dot, distance, distances, add};                        \
  };

ATOLL_LOOPS(AnyCpu, )
#if defined(__x86_64__)
ATOLL_LOOPS(Avx2, [[gnu::target("arch=x86-64-v3")]])
ATOLL_LOOPS(Avx512, [[gnu::target("arch=x86-64-v4,prefer-vector-width=512")]])
#endif

}  // namespace

std::vector<const VectorLoops*> vector_loops_here() {
  std::vector<const VectorLoops*> all;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("x86-64-v4")) all.push_back(&Avx512::kAll);
  if (__builtin_cpu_supports("x86-64-v3")) all.push_back(&Avx2::kAll);
#endif
  all.push_back(&AnyCpu::kAll);
  return all;
}

const VectorLoops& vector_loops() {
  static const VectorLoops& loops = *vector_loops_here().front();
  return loops;
}

}  // namespace atl::kernels
