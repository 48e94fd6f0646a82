// The bandwidth kernels: read, write, copy, scale, add and triad over arrays of doubles.
//
// copy to triad are STREAM's (J. McCalpin, "Memory bandwidth and machine balance in current high
// performance computers", 1995) and bytes are counted as STREAM does: what the program moves,
// without the line that a temporal store first reads (write-allocate). read and write are one
// array alone. The loops are unrolled by hand for each instruction set, with ordinary or
// non-temporal stores, so that a figure says what was done and no compiler chooses.
//
// Pure: raw pointers in, no clock, no threads. Values are integers held in doubles, so sums and
// fused multiply-adds are exact and every element has one right value, known in closed form.
#pragma once

#include <cstddef>

#include "isa.hpp"

namespace atl::probe {

enum class MoveOp { read, write, copy, scale, add, triad };
enum class Store { temporal, streaming };

// A chunk of each array: `a` is written (by read: read), `b` and `c` are read. Each begins at a
// cache line; those that an operation does not use may be null.
struct Streams {
  double* a;
  const double* b;
  const double* c;
  std::size_t elements;
};

// Goes `passes` times over the chunk; for read the sum of the last one, else 0.
using MoveKernel = double (*)(const Streams& streams, std::size_t passes);

// Null: this build has no such kernel (another architecture, or no such store).
[[nodiscard]] MoveKernel move_kernel(MoveOp op, Store store, Isa isa);
// The same loops without a load or a store.
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
inline constexpr double kWritten = 5.0;  // what write writes

// What arrays hold: a before the run is kPoison (for read: first_source), so that an element that
// was never written shows. `index` counts from the begin of the whole array, so that an element
// that landed in another chunk's place shows too.
inline constexpr double kPoison = -1.0;
[[nodiscard]] constexpr double first_source(std::size_t index) {
  return static_cast<double>(index % 1021 + 1);
}
[[nodiscard]] constexpr double second_source(std::size_t index) {
  return static_cast<double>(index % 509 + 7);
}

// Fills chunks that begin at element `first` of their arrays; `b` and `c` where the operation has
// them.
void move_fill(MoveOp op, double* a, double* b, double* c, std::size_t first, std::size_t elements);
// Whether each element of `a` is what the operation makes of the sources.
[[nodiscard]] bool move_verify(MoveOp op, const double* a, std::size_t first, std::size_t elements);
// What one pass of read over the chunk sums up.
[[nodiscard]] double expected_sum(std::size_t first, std::size_t elements);

inline constexpr std::size_t kChunkBytes = 64;
inline constexpr std::size_t kChunkElements = kChunkBytes / sizeof(double);

inline constexpr std::size_t kLayoutPage = 4096;

// Where each array begins, in bytes from the begin of the memory.
struct MoveLayout {
  std::size_t elements;      // of each array
  std::size_t stride_bytes;  // from one array's begin to the next one's
  std::size_t total_bytes;
};
[[nodiscard]] MoveLayout move_layout(MoveOp op, std::size_t bytes);

}  // namespace atl::probe
