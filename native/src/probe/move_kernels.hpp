// The bandwidth kernels: read, write, copy, scale, add and triad over arrays of doubles.
//
// copy to triad are STREAM's (J. McCalpin, "Memory bandwidth and machine balance in current high
// performance computers", 1995). Bytes are counted as in STREAM: what the program moves, without
// the line that a temporal store first reads (write-allocate). read and write use one array. The
// loops are unrolled by hand for each instruction set, with ordinary or non-temporal stores, so
// that the compiler does not choose the instructions.
//
// Pure: raw pointers in, no clock, no threads. Values are integers stored in doubles, so sums and
// fused multiply-adds are exact, and the right value of every element has a closed form.
#pragma once

#include <cstddef>

#include "isa.hpp"

namespace atl::probe {

enum class MoveOp { read, write, copy, scale, add, triad };
enum class Store { temporal, streaming };

// A chunk of each array. Operations write `a` (read reads it) and read `b` and `c`. Each begins at
// a cache line; those that an operation does not use may be null.
struct Streams {
  double* a;
  const double* b;
  const double* c;
  std::size_t elements;
};

// Runs `passes` times over the chunk. Returns the sum of the last pass for read, else 0.
using MoveKernel = double (*)(const Streams& streams, std::size_t passes);

// Returns null if this build has no such kernel (another architecture, or no such store).
[[nodiscard]] MoveKernel move_kernel(MoveOp op, Store store, Isa isa);
// The same loops without loads and stores.
[[nodiscard]] MoveKernel move_null_kernel(MoveOp op, Isa isa);

[[nodiscard]] constexpr std::size_t arrays_of(MoveOp op) {
  return op == MoveOp::read || op == MoveOp::write   ? 1
         : op == MoveOp::copy || op == MoveOp::scale ? 2
                                                     : 3;
}
[[nodiscard]] constexpr std::size_t bytes_per_element(MoveOp op) {
  return arrays_of(op) * sizeof(double);
}

inline constexpr double kScalar = 3.0;   // of scale and triad
inline constexpr double kWritten = 5.0;  // the value that write writes

// Initial values. `a` is kPoison before the run (for read: first_source), which reveals an element
// that was never written. `index` counts from the start of the whole array, which reveals an
// element that was written into another chunk's place.
inline constexpr double kPoison = -1.0;
[[nodiscard]] constexpr double first_source(std::size_t index) {
  return static_cast<double>(index % 1021 + 1);
}
[[nodiscard]] constexpr double second_source(std::size_t index) {
  return static_cast<double>(index % 509 + 7);
}

// Fills chunks that begin at element `first` of their arrays; `b` and `c` only if the operation has
// them.
void move_fill(MoveOp op, double* a, double* b, double* c, std::size_t first, std::size_t elements);
// Whether each element of `a` is the result of the operation on the sources.
[[nodiscard]] bool move_verify(MoveOp op, const double* a, std::size_t first, std::size_t elements);
// The expected sum of one pass of read over the chunk.
[[nodiscard]] double expected_sum(std::size_t first, std::size_t elements);

inline constexpr std::size_t kChunkBytes = 64;
inline constexpr std::size_t kChunkElements = kChunkBytes / sizeof(double);

inline constexpr std::size_t kLayoutPage = 4096;

// The layout of the arrays in memory.
struct MoveLayout {
  std::size_t elements;      // per array
  std::size_t stride_bytes;  // from one array's start to the next
  std::size_t total_bytes;
};
[[nodiscard]] MoveLayout move_layout(MoveOp op, std::size_t bytes);

}  // namespace atl::probe
