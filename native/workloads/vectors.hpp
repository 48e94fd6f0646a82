// Inner loops over vectors of floats, for the widest instructions that the CPU has.
//
// Each loop is written once, over vectors of 16 floats, and compiled for AVX-512, for AVX2 and for
// any CPU. Sums are of several partial sums, so they differ from a plain loop's in the last bits.
//
// Vectors begin at a multiple of 64 bytes and have a multiple of kLane elements: `padded`.
#pragma once

#include <cstddef>
#include <vector>

namespace atl::kernels {

inline constexpr std::size_t kLane = 16;

[[nodiscard]] constexpr std::size_t padded(std::size_t elements) {
  return (elements + kLane - 1) / kLane * kLane;
}

struct VectorLoops {
  // The sum of left[i] * right[i].
  float (*dot)(const float* left, const float* right, std::size_t size);
  // The sum of (left[i] - right[i])^2.
  float (*distance)(const float* left, const float* right, std::size_t size);
  // The distance of each of `count` rows, which follow each other, to `center`.
  void (*distances)(const float* rows, std::size_t count, const float* center, std::size_t size,
                    float* distances);
  // sum[i] += factor * vector[i]. Meanwhile fetches as much of `next` into the caches, as nothing
  // else would use the memory then.
  void (*add)(float* sum, float factor, const float* vector, std::size_t size, const float* next);
};

[[nodiscard]] const VectorLoops& vector_loops();

// All that this CPU can run, the best first.
[[nodiscard]] std::vector<const VectorLoops*> vector_loops_here();

}  // namespace atl::kernels
