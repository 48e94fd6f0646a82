#include "vectors.hpp"

namespace atl::kernels {
namespace {

// Threads may race on a model by these loops (Hogwild). A load or store of aligned vectors never
// tears a float on a CPU that has such instructions; C++ has no word for that, and an atomic access
// for each float would be no vector.
#define ATOLL_INLINED [[gnu::always_inline, gnu::no_sanitize("thread")]] inline
#define ATOLL_LOOP [[gnu::no_sanitize("thread")]] static

// As wide as the registers: GCC keeps wider vectors in memory.
template <std::size_t kBytes>
struct Wide {
  typedef float Vector __attribute__((vector_size(kBytes), may_alias));
  static constexpr std::size_t kFloats = kBytes / sizeof(float);
  static constexpr std::size_t kOfLane = kLane / kFloats;
};

template <class Vector>
ATOLL_INLINED const Vector& at(const float* vector) {
  return *reinterpret_cast<const Vector*>(vector);
}

template <class Vector, bool kDistance>
ATOLL_INLINED void add_term(Vector& sum, const float* left, const float* right) {
  if constexpr (kDistance) {
    const Vector apart = at<Vector>(left) - at<Vector>(right);
    sum += apart * apart;
  } else {
    sum += at<Vector>(left) * at<Vector>(right);
  }
}

// By halves, as a chain of 16 additions takes longer than the loop over 128 elements.
ATOLL_INLINED float sum_of(const Wide<16>::Vector& all) {
  return (all[0] + all[2]) + (all[1] + all[3]);
}
ATOLL_INLINED float sum_of(const Wide<32>::Vector& all) {
  return sum_of(__builtin_shufflevector(all, all, 0, 1, 2, 3) +
                __builtin_shufflevector(all, all, 4, 5, 6, 7));
}
ATOLL_INLINED float sum_of(const Wide<64>::Vector& all) {
  return sum_of(__builtin_shufflevector(all, all, 0, 1, 2, 3, 4, 5, 6, 7) +
                __builtin_shufflevector(all, all, 8, 9, 10, 11, 12, 13, 14, 15));
}

template <std::size_t kBytes, bool kDistance>
ATOLL_INLINED float sum_of_terms(const float* left, const float* right, std::size_t size) {
  using Vector = typename Wide<kBytes>::Vector;
  constexpr std::size_t kFloats = Wide<kBytes>::kFloats;
  Vector sums[4] = {};  // so that an addition need not wait for the one before
  std::size_t first = 0;
  for (; first + 4 * kFloats <= size; first += 4 * kFloats) {
#pragma GCC unroll 4  // else the sums are in memory
    for (std::size_t part = 0; part < 4; ++part) {
      add_term<Vector, kDistance>(sums[part], left + first + part * kFloats,
                                  right + first + part * kFloats);
    }
  }
  for (; first < size; first += kFloats) {
    add_term<Vector, kDistance>(sums[0], left + first, right + first);
  }
  return sum_of((sums[0] + sums[1]) + (sums[2] + sums[3]));
}

template <std::size_t kBytes>
ATOLL_INLINED void distances_of(const float* rows, std::size_t count, const float* center,
                                std::size_t size, float* distances) {
  for (std::size_t row = 0; row < count; ++row) {
    distances[row] = sum_of_terms<kBytes, true>(rows + row * size, center, size);
  }
}

template <std::size_t kBytes>
ATOLL_INLINED Products add_to(float* sum, RowPair added, RowPair next, std::size_t size) {
  using Vector = typename Wide<kBytes>::Vector;
  constexpr std::size_t kParts = Wide<kBytes>::kOfLane;
  Vector left[kParts] = {};
  Vector right[kParts] = {};
  Vector both[kParts] = {};
  for (std::size_t first = 0; first < size; first += kLane) {
#pragma GCC unroll 4
    for (std::size_t part = 0; part < kParts; ++part) {
      const std::size_t here = first + part * Wide<kBytes>::kFloats;
      const Vector now = at<Vector>(sum + here) + added.of_left * at<Vector>(added.left + here) +
                         added.of_right * at<Vector>(added.right + here);
      *reinterpret_cast<Vector*>(sum + here) = now;
      left[part] += now * at<Vector>(next.left + here);
      right[part] += now * at<Vector>(next.right + here);
      both[part] += at<Vector>(next.left + here) * at<Vector>(next.right + here);
    }
  }
  for (std::size_t part = 1; part < kParts; ++part) {
    left[0] += left[part];
    right[0] += right[part];
    both[0] += both[part];
  }
  return {sum_of(left[0]), sum_of(right[0]), sum_of(both[0])};
}

#define ATOLL_LOOPS(NAME, BYTES, TARGET)                                                        \
  struct NAME {                                                                                 \
    TARGET ATOLL_LOOP float dot(const float* left, const float* right, std::size_t size) {      \
      return sum_of_terms<BYTES, false>(left, right, size);                                     \
    }                                                                                           \
    TARGET ATOLL_LOOP float distance(const float* left, const float* right, std::size_t size) { \
      return sum_of_terms<BYTES, true>(left, right, size);                                      \
    }                                                                                           \
    TARGET ATOLL_LOOP void distances(const float* rows, std::size_t count, const float* center, \
                                     std::size_t size, float* distances) {                      \
      distances_of<BYTES>(rows, count, center, size, distances);                                \
    }                                                                                           \
    TARGET ATOLL_LOOP Products add(float* sum, RowPair added, RowPair next, std::size_t size) { \
      return add_to<BYTES>(sum, added, next, size);                                             \
    }                                                                                           \
    static constexpr VectorLoops kAll = {dot, distance, distances, add};                        \
  };

ATOLL_LOOPS(AnyCpu, 16, )
#if defined(__x86_64__)
ATOLL_LOOPS(Avx2, 32, [[gnu::target("arch=x86-64-v3")]])
ATOLL_LOOPS(Avx512, 64, [[gnu::target("arch=x86-64-v4,prefer-vector-width=512")]])
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
