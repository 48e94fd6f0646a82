// The loops of move_kernels.hpp over a vector type `V`. The file of each instruction set includes
// this once.
//
// Such a file may be compiled for a different CPU. So everything here has internal linkage and
// calls nothing of the standard library: an inline function of it, emitted here with AVX-512 and
// merged by the linker with all other copies, would crash CPUs without AVX-512.
//
// V has: kWidth (doubles), Register, load(const double*), store(double*, Register),
// stream(double*, Register), set(double), add, multiply_add(x, y, z) = x * y + z, multiply,
// use(Register) (reads it and does nothing with it), fence().
#pragma once

#include <cstddef>

#include "move_kernels.hpp"

namespace atl::probe {
namespace {

// Tells the compiler that memory may have changed, so that it cannot omit a pass.
inline void touch_memory() { asm volatile("" ::: "memory"); }

template <class V, Store kStore>
inline void put(double* to, typename V::Register value) {
  if constexpr (kStore == Store::streaming) {
    V::stream(to, value);
  } else {
    V::store(to, value);
  }
}

// The value for element i of `a`, for each operation that writes.
template <class V, MoveOp kOp>
inline typename V::Register make(const Streams& s, std::size_t i, typename V::Register constant) {
  if constexpr (kOp == MoveOp::write) {
    return constant;
  } else if constexpr (kOp == MoveOp::copy) {
    return V::load(s.b + i);
  } else if constexpr (kOp == MoveOp::scale) {
    return V::multiply(V::load(s.b + i), constant);
  } else if constexpr (kOp == MoveOp::add) {
    return V::add(V::load(s.b + i), V::load(s.c + i));
  } else {
    return V::multiply_add(V::load(s.c + i), constant, V::load(s.b + i));
  }
}

template <MoveOp kOp>
inline double make_one(const Streams& s, std::size_t i) {
  if constexpr (kOp == MoveOp::write) {
    return kWritten;
  } else if constexpr (kOp == MoveOp::copy) {
    return s.b[i];
  } else if constexpr (kOp == MoveOp::scale) {
    return kScalar * s.b[i];
  } else if constexpr (kOp == MoveOp::add) {
    return s.b[i] + s.c[i];
  } else {
    return s.b[i] + kScalar * s.c[i];
  }
}

template <class V, MoveOp kOp, Store kStore>
double write_passes(const Streams& streams, std::size_t passes) {
  constexpr std::size_t kBlock = V::kWidth * V::kUnroll;
  const Streams s = streams;
  const auto constant = V::set(kOp == MoveOp::write ? kWritten : kScalar);
  const std::size_t whole = s.elements - s.elements % kBlock;
  for (std::size_t pass = 0; pass < passes; ++pass) {
    std::size_t i = 0;
    for (; i < whole; i += kBlock) {
      // All loads of a block come before its stores, to alternate less often.
      typename V::Register values[V::kUnroll];
#pragma GCC unroll 16
      for (std::size_t u = 0; u < V::kUnroll; ++u) {
        values[u] = make<V, kOp>(s, i + u * V::kWidth, constant);
      }
#pragma GCC unroll 16
      for (std::size_t u = 0; u < V::kUnroll; ++u) {
        put<V, kStore>(s.a + i + u * V::kWidth, values[u]);
      }
    }
    for (; i + V::kWidth <= s.elements; i += V::kWidth) {
      put<V, kStore>(s.a + i, make<V, kOp>(s, i, constant));
    }
    for (; i < s.elements; ++i) s.a[i] = make_one<kOp>(s, i);
    touch_memory();
  }
  if constexpr (kStore == Store::streaming) V::fence();
  return 0.0;
}

// Only the last pass computes a sum, because additions are slower than loads from L1.
template <class V>
double read_passes(const Streams& streams, std::size_t passes) {
  constexpr std::size_t kBlock = V::kWidth * V::kReadUnroll;
  const Streams s = streams;
  const std::size_t whole = s.elements - s.elements % kBlock;
  const std::size_t vectors = s.elements - s.elements % V::kWidth;
  if (passes == 0) return 0.0;
  for (std::size_t pass = 1; pass < passes; ++pass) {
    std::size_t i = 0;
    for (; i < whole; i += kBlock) {
#pragma GCC unroll 16
      for (std::size_t u = 0; u < V::kReadUnroll; ++u) V::use(V::load(s.a + i + u * V::kWidth));
    }
    for (; i < vectors; i += V::kWidth) V::use(V::load(s.a + i));
    for (; i < s.elements; ++i) asm volatile("" : : "r"(s.a[i]));
    touch_memory();
  }
  typename V::Register sums[V::kReadUnroll];
#pragma GCC unroll 16
  for (std::size_t u = 0; u < V::kReadUnroll; ++u) sums[u] = V::set(0.0);
  std::size_t i = 0;
  for (; i < whole; i += kBlock) {
#pragma GCC unroll 16
    for (std::size_t u = 0; u < V::kReadUnroll; ++u) {
      sums[u] = V::add(sums[u], V::load(s.a + i + u * V::kWidth));
    }
  }
  for (; i < vectors; i += V::kWidth) sums[0] = V::add(sums[0], V::load(s.a + i));
  double sum = 0.0;
  for (; i < s.elements; ++i) sum += s.a[i];
  for (std::size_t u = 0; u < V::kReadUnroll; ++u) {
    alignas(kChunkBytes) double parts[V::kWidth];
    V::store(parts, sums[u]);
    for (const double part : parts) sum += part;
  }
  return sum;
}

// Only the control of the loops: the block counter, the tails, the passes.
template <class V, std::size_t kUnroll>
double null_passes(const Streams& streams, std::size_t passes) {
  constexpr std::size_t kBlock = V::kWidth * kUnroll;
  const Streams s = streams;
  const std::size_t whole = s.elements - s.elements % kBlock;
  for (std::size_t pass = 0; pass < passes; ++pass) {
    std::size_t i = 0;
    for (; i < whole; i += kBlock) asm volatile("" : "+r"(i));
    for (; i + V::kWidth <= s.elements; i += V::kWidth) asm volatile("" : "+r"(i));
    for (; i < s.elements; ++i) asm volatile("" : "+r"(i));
  }
  return 0.0;
}

template <class V, Store kStore>
MoveKernel pick(MoveOp op) {
  switch (op) {
    case MoveOp::read: return read_passes<V>;
    case MoveOp::write: return write_passes<V, MoveOp::write, kStore>;
    case MoveOp::copy: return write_passes<V, MoveOp::copy, kStore>;
    case MoveOp::scale: return write_passes<V, MoveOp::scale, kStore>;
    case MoveOp::add: return write_passes<V, MoveOp::add, kStore>;
    case MoveOp::triad: return write_passes<V, MoveOp::triad, kStore>;
  }
  return nullptr;
}

template <class V>
MoveKernel pick_null(MoveOp op) {
  return op == MoveOp::read ? null_passes<V, V::kReadUnroll> : null_passes<V, V::kUnroll>;
}

}  // namespace
}  // namespace atl::probe
