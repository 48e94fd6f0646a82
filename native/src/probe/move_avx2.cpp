// move_kernels.hpp's loops with AVX2 and FMA. Compiled with -mavx2 -mfma; called only if the CPU
// supports them.

#include "move_isa.hpp"

#if defined(__x86_64__)

#include <immintrin.h>

#include "move_loops.hpp"

namespace atl::probe {
namespace {

struct Avx2 {
  using Register = __m256d;
  static constexpr std::size_t kWidth = 4;
  static constexpr std::size_t kUnroll = 4;
  static constexpr std::size_t kReadUnroll = 8;
  static Register load(const double* from) { return _mm256_load_pd(from); }
  static void store(double* to, Register value) { _mm256_store_pd(to, value); }
  static void stream(double* to, Register value) { _mm256_stream_pd(to, value); }
  static void use(Register value) { asm volatile("" : : "x"(value)); }
  static Register set(double value) { return _mm256_set1_pd(value); }
  static Register add(Register x, Register y) { return _mm256_add_pd(x, y); }
  static Register multiply(Register x, Register y) { return _mm256_mul_pd(x, y); }
  static Register multiply_add(Register x, Register y, Register z) {
    return _mm256_fmadd_pd(x, y, z);
  }
  static void fence() { _mm_sfence(); }
};

}  // namespace

MoveKernel move_kernel_avx2(MoveOp op, Store store) {
  return store == Store::streaming ? pick<Avx2, Store::streaming>(op)
                                   : pick<Avx2, Store::temporal>(op);
}
MoveKernel move_null_avx2(MoveOp op) { return pick_null<Avx2>(op); }

}  // namespace atl::probe

#else

namespace atl::probe {
MoveKernel move_kernel_avx2(MoveOp, Store) { return nullptr; }
MoveKernel move_null_avx2(MoveOp) { return nullptr; }
}  // namespace atl::probe

#endif
