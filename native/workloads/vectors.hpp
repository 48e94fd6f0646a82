// Inner loops over vectors of floats, for the widest instructions that the CPU has.
//
// Each loop is written once, and compiled for AVX-512, for AVX2 and for any CPU. Sums are of
// several partial sums, so they differ from a plain loop's in the last bits.
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

// Two rows, and the factor of each.
struct RowPair {
  const float* left;
  const float* right;
  float of_left;
  float of_right;
};

struct Products {
  float left;   // sum.next.left
  float right;  // sum.next.right
  float both;   // next.left.next.right
};

struct VectorLoops {
  // The sum of left[i] * right[i].
  float (*dot)(const float* left, const float* right, std::size_t size);
  // The sum of (left[i] - right[i])^2.
  float (*distance)(const float* left, const float* right, std::size_t size);
  // The distance of each of `count` rows, which follow each other, to `center`.
  void (*distances)(const float* rows, std::size_t count, const float* center, std::size_t size,
                    float* distances);
  // Adds both rows of `added`, times their factors, to `sum`; in the same pass the products of what
  // this makes of `sum` with the rows of `next`, whose factors nobody reads.
  Products (*add)(float* sum, RowPair added, RowPair next, std::size_t size);
};

[[nodiscard]] const VectorLoops& vector_loops();

// All that this CPU can run, the best first.
[[nodiscard]] std::vector<const VectorLoops*> vector_loops_here();

}  // namespace atl::kernels
