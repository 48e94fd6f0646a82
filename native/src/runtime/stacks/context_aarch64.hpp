// The switch for aarch64 (AAPCS64): callee-saved are x19 to x30, sp, the low halves of v8 to v15,
// and the control bits of FPCR.
#pragma once

#include <cstddef>
#include <cstdint>

// Where a new context begins (context_aarch64.S): calls the entry in x29.
extern "C" [[gnu::visibility("hidden")]] void atl_rt_context_start();

namespace atl::runtime {

// The assembler text below uses these offsets.
struct Context {
  void* sp = nullptr;
  void* pc = nullptr;
  void* frame = nullptr;      // x29; in a new context the entry
  std::uint64_t control = 0;  // FPCR; the status flags are a register of their own
};
static_assert(offsetof(Context, pc) == 8 && offsetof(Context, frame) == 16);
static_assert(offsetof(Context, control) == 24);

#ifdef __ARM_FEATURE_SVE
#define ATL_RT_SVE_REGISTERS                                                                       \
  , "p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7", "p8", "p9", "p10", "p11", "p12", "p13", "p14", \
      "p15", "ffr"
#else
#define ATL_RT_SVE_REGISTERS
#endif

inline void save_control(Context& context) noexcept {
  asm volatile("mrs %0, fpcr" : "=r"(context.control));
}

// x29 cannot be listed as changed (it may be the frame pointer), so the switch saves it; x18 may be
// the platform's. Nothing is pushed, so the caller's unwind information is valid at every
// instruction except the last, which already runs on the other stack.
[[gnu::always_inline]] inline void* switch_context(Context& from, Context& to,
                                                   void* passed) noexcept {
  register void* passed_register asm("x0") = passed;
  register Context* from_register asm("x1") = &from;
  register Context* to_register asm("x2") = &to;
  asm volatile(
      "mov x9, sp\n\t"
      "adr x10, 1f\n\t"
      "ldr x11, [x1, #24]\n\t"
      "stp x9, x10, [x1]\n\t"
      "str x29, [x1, #16]\n\t"
      "ldp x29, x12, [x2, #16]\n\t"
      "cmp x11, x12\n\t"
      "b.ne 2f\n"
      "0:\n\t"
      "ldp x9, x16, [x2]\n\t"
      "mov sp, x9\n\t"
      "br x16\n"
      "2:\n\t"
      "msr fpcr, x12\n\t"
      "b 0b\n"
      "1:\n\t"
      "hint #36\n\t"  // bti j: an indirect jump lands here
      : "+r"(passed_register), "+r"(from_register), "+r"(to_register)
      :
      : "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14", "x15", "x16",
        "x17", "x18", "x19", "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27", "x28", "x30",
        "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13",
        "v14", "v15", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26",
        "v27", "v28", "v29", "v30", "v31" ATL_RT_SVE_REGISTERS, "cc", "memory");
  return passed_register;
}

#undef ATL_RT_SVE_REGISTERS

inline void prepare_context(Context& context, void* top, FiberEntry entry) noexcept {
  context = Context{};
  context.sp = top;
  context.pc = reinterpret_cast<void*>(&atl_rt_context_start);
  context.frame = reinterpret_cast<void*>(entry);
}

}  // namespace atl::runtime
