// move_kernels.hpp's loops with Advanced SIMD, which every 64-bit ARM has.

#include "move_isa.hpp"

#if defined(__aarch64__)

#include <arm_neon.h>

#include "move_loops.hpp"

namespace atl::probe {
namespace {

// A pair of registers, because the non-temporal store (STNP) takes two.
struct Neon {
  using Register = float64x2x2_t;
  static constexpr std::size_t kWidth = 4;
  static constexpr std::size_t kUnroll = 4;
  static constexpr std::size_t kReadUnroll = 4;
  static Register load(const double* from) { return {vld1q_f64(from), vld1q_f64(from + 2)}; }
  static void store(double* to, Register value) {
    vst1q_f64(to, value.val[0]);
    vst1q_f64(to + 2, value.val[1]);
  }
  static void stream(double* to, Register value) {
    asm volatile("stnp %q0, %q1, [%2]"
                 :
                 : "w"(value.val[0]), "w"(value.val[1]), "r"(to)
                 : "memory");
  }
  static void use(Register value) { asm volatile("" : : "w"(value.val[0]), "w"(value.val[1])); }
  static Register set(double value) { return {vdupq_n_f64(value), vdupq_n_f64(value)}; }
  static Register add(Register x, Register y) {
    return {vaddq_f64(x.val[0], y.val[0]), vaddq_f64(x.val[1], y.val[1])};
  }
  static Register multiply(Register x, Register y) {
    return {vmulq_f64(x.val[0], y.val[0]), vmulq_f64(x.val[1], y.val[1])};
  }
  static Register multiply_add(Register x, Register y, Register z) {
    return {vfmaq_f64(z.val[0], x.val[0], y.val[0]), vfmaq_f64(z.val[1], x.val[1], y.val[1])};
  }
  static void fence() { asm volatile("dmb ishst" ::: "memory"); }
};

}  // namespace

MoveKernel move_kernel_neon(MoveOp op, Store store) {
  return store == Store::streaming ? pick<Neon, Store::streaming>(op)
                                   : pick<Neon, Store::temporal>(op);
}
MoveKernel move_null_neon(MoveOp op) { return pick_null<Neon>(op); }

}  // namespace atl::probe

#else

namespace atl::probe {
MoveKernel move_kernel_neon(MoveOp, Store) { return nullptr; }
MoveKernel move_null_neon(MoveOp) { return nullptr; }
}  // namespace atl::probe

#endif
