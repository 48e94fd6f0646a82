// move_kernels.hpp's loops one double at a time: runs on every CPU, and the tests compare the other
// loops with it. Compiled without vectorization, and without turning a copy into memcpy.

#include "move_isa.hpp"
#include "move_loops.hpp"

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace atl::probe {
namespace {

struct Scalar {
  using Register = double;
  static constexpr std::size_t kWidth = 1;
  static constexpr std::size_t kUnroll = 8;
  static constexpr std::size_t kReadUnroll = 8;
  static Register load(const double* from) { return *from; }
  static void store(double* to, Register value) { *to = value; }
#if defined(__x86_64__)
  static void stream(double* to, Register value) {
    long long bits;
    __builtin_memcpy(&bits, &value, sizeof bits);
    _mm_stream_si64(reinterpret_cast<long long*>(to), bits);
  }
  static void fence() { _mm_sfence(); }
#endif
  static void use(Register value) {
#if defined(__x86_64__)
    asm volatile("" : : "x"(value));
#else
    asm volatile("" : : "w"(value));
#endif
  }
  static Register set(double value) { return value; }
  static Register add(Register x, Register y) { return x + y; }
  static Register multiply(Register x, Register y) { return x * y; }
  static Register multiply_add(Register x, Register y, Register z) { return x * y + z; }
};

}  // namespace

MoveKernel move_kernel_scalar(MoveOp op, Store store) {
  if (store == Store::temporal) return pick<Scalar, Store::temporal>(op);
#if defined(__x86_64__)
  return pick<Scalar, Store::streaming>(op);
#else
  return nullptr;  // only x86 has a non-temporal store of one double
#endif
}
MoveKernel move_null_scalar(MoveOp op) { return pick_null<Scalar>(op); }

}  // namespace atl::probe
