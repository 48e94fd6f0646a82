// move_kernels.hpp's loops with AVX-512F. Compiled with -mavx512f; called only if the CPU supports
// it.

#include "move_isa.hpp"

#if defined(__x86_64__)

#include <immintrin.h>

#include "move_loops.hpp"

namespace atl::probe {
namespace {

struct Avx512 {
  using Register = __m512d;
  static constexpr std::size_t kWidth = 8;
  static constexpr std::size_t kUnroll = 4;
  static constexpr std::size_t kReadUnroll = 8;
  static Register load(const double* from) { return _mm512_load_pd(from); }
  static void store(double* to, Register value) { _mm512_store_pd(to, value); }
  static void stream(double* to, Register value) { _mm512_stream_pd(to, value); }
  static void use(Register value) { asm volatile("" : : "v"(value)); }
  static Register set(double value) { return _mm512_set1_pd(value); }
  static Register add(Register x, Register y) { return _mm512_add_pd(x, y); }
  static Register multiply(Register x, Register y) { return _mm512_mul_pd(x, y); }
  static Register multiply_add(Register x, Register y, Register z) {
    return _mm512_fmadd_pd(x, y, z);
  }
  static void fence() { _mm_sfence(); }
};

}  // namespace

MoveKernel move_kernel_avx512(MoveOp op, Store store) {
  return store == Store::streaming ? pick<Avx512, Store::streaming>(op)
                                   : pick<Avx512, Store::temporal>(op);
}
MoveKernel move_null_avx512(MoveOp op) { return pick_null<Avx512>(op); }

}  // namespace atl::probe

#else

namespace atl::probe {
MoveKernel move_kernel_avx512(MoveOp, Store) { return nullptr; }
MoveKernel move_null_avx512(MoveOp) { return nullptr; }
}  // namespace atl::probe

#endif
