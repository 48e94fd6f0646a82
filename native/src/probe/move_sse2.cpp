// move_kernels.hpp's loops with SSE2, which every x86-64 CPU has. For non-temporal stores and
// copies from L2 these narrow loops can be the fastest (Sapphire Rapids).

#include "move_isa.hpp"

#if defined(__x86_64__)

#include <emmintrin.h>

#include "move_loops.hpp"

namespace atl::probe {
namespace {

struct Sse2 {
  using Register = __m128d;
  static constexpr std::size_t kWidth = 2;
  static constexpr std::size_t kUnroll = 4;
  static constexpr std::size_t kReadUnroll = 8;
  static Register load(const double* from) { return _mm_load_pd(from); }
  static void store(double* to, Register value) { _mm_store_pd(to, value); }
  static void stream(double* to, Register value) { _mm_stream_pd(to, value); }
  static void use(Register value) { asm volatile("" : : "x"(value)); }
  static Register set(double value) { return _mm_set1_pd(value); }
  static Register add(Register x, Register y) { return _mm_add_pd(x, y); }
  static Register multiply(Register x, Register y) { return _mm_mul_pd(x, y); }
  static Register multiply_add(Register x, Register y, Register z) {
    return _mm_add_pd(_mm_mul_pd(x, y), z);
  }
  static void fence() { _mm_sfence(); }
};

}  // namespace

MoveKernel move_kernel_sse2(MoveOp op, Store store) {
  return store == Store::streaming ? pick<Sse2, Store::streaming>(op)
                                   : pick<Sse2, Store::temporal>(op);
}
MoveKernel move_null_sse2(MoveOp op) { return pick_null<Sse2>(op); }

}  // namespace atl::probe

#else

namespace atl::probe {
MoveKernel move_kernel_sse2(MoveOp, Store) { return nullptr; }
MoveKernel move_null_sse2(MoveOp) { return nullptr; }
}  // namespace atl::probe

#endif
