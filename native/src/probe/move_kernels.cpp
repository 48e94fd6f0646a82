#include "move_kernels.hpp"

#include "move_isa.hpp"

namespace atl::probe {
namespace {

double expected(MoveOp op, std::size_t index) {
  switch (op) {
    case MoveOp::read: return first_source(index);
    case MoveOp::write: return kWritten;
    case MoveOp::copy: return first_source(index);
    case MoveOp::scale: return kScalar * first_source(index);
    case MoveOp::add: return first_source(index) + second_source(index);
    case MoveOp::triad: return first_source(index) + kScalar * second_source(index);
  }
  return kPoison;
}

constexpr std::size_t stride_of(std::size_t value, std::size_t to) {
  return (value + to - 1) / to * to;
}

}  // namespace

MoveKernel move_kernel(MoveOp op, Store store, Isa isa) {
  switch (isa) {
    case Isa::scalar: return move_kernel_scalar(op, store);
    case Isa::sse2: return move_kernel_sse2(op, store);
    case Isa::avx2: return move_kernel_avx2(op, store);
    case Isa::avx512: return move_kernel_avx512(op, store);
    case Isa::neon: return move_kernel_neon(op, store);
  }
  return nullptr;
}

MoveKernel move_null_kernel(MoveOp op, Isa isa) {
  switch (isa) {
    case Isa::scalar: return move_null_scalar(op);
    case Isa::sse2: return move_null_sse2(op);
    case Isa::avx2: return move_null_avx2(op);
    case Isa::avx512: return move_null_avx512(op);
    case Isa::neon: return move_null_neon(op);
  }
  return nullptr;
}

void move_fill(MoveOp op, double* a, double* b, double* c, std::size_t first,
               std::size_t elements) {
  for (std::size_t i = 0; i < elements; ++i) {
    a[i] = op == MoveOp::read ? first_source(first + i) : kPoison;
    if (arrays_of(op) > 1) b[i] = first_source(first + i);
    if (arrays_of(op) > 2) c[i] = second_source(first + i);
  }
}

bool move_verify(MoveOp op, const double* a, std::size_t first, std::size_t elements) {
  bool right = true;
  for (std::size_t i = 0; i < elements; ++i) right &= a[i] == expected(op, first + i);
  return right;
}

double expected_sum(std::size_t first, std::size_t elements) {
  double sum = 0.0;
  for (std::size_t i = first; i < first + elements; ++i) sum += first_source(i);
  return sum;
}

MoveLayout move_layout(MoveOp op, std::size_t bytes) {
  const std::size_t elements = bytes / bytes_per_element(op);
  const std::size_t stride = stride_of(elements * sizeof(double), kLayoutPage);
  return {elements, stride, stride * arrays_of(op)};
}

}  // namespace atl::probe
