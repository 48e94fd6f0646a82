// The switch for x86-64 (System V ABI): callee-saved are rbx, rbp, rsp, r12 to r15, the control
// bits of MXCSR and the x87 control word.
#pragma once

#include <cstddef>
#include <cstdint>

// Where a new context begins (context_x86_64.S): calls the entry in rbp.
extern "C" [[gnu::visibility("hidden")]] void atl_rt_context_start();

// See context_x86_64.S.
#define ATL_RT_SWITCH_AND_RETURN
extern "C" [[gnu::visibility("hidden")]] void atl_rt_switch_and_return(void* from, void* to,
                                                                       void* passed) noexcept;

// See context.hpp.
#if __has_cpp_attribute(gnu::function_return)
#define ATL_RT_RETURNS_BY_JUMP [[gnu::function_return("thunk-extern")]]
#endif

namespace atl::runtime {

// The assembler text below uses these offsets.
struct Context {
  void* sp = nullptr;
  void* pc = nullptr;
  void* frame = nullptr;               // rbp; in a new context the entry
  std::uint32_t sse_control = 0x1f80;  // MXCSR, the ABI's default
  std::uint16_t x87_control = 0x037f;  // the ABI's default
  std::uint16_t unused = 0;
};
static_assert(offsetof(Context, pc) == 8 && offsetof(Context, frame) == 16);
static_assert(offsetof(Context, sse_control) == 24 && offsetof(Context, x87_control) == 28);

#ifdef __AVX512F__
#define ATL_RT_AVX512_REGISTERS                                                                 \
  , "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", "xmm24", "xmm25",   \
      "xmm26", "xmm27", "xmm28", "xmm29", "xmm30", "xmm31", "k0", "k1", "k2", "k3", "k4", "k5", \
      "k6", "k7"
#else
#define ATL_RT_AVX512_REGISTERS
#endif

inline void save_control(Context& context) noexcept {
  asm volatile("stmxcsr %0\n\tfnstcw %1" : "=m"(context.sse_control), "=m"(context.x87_control));
}

// rbp cannot be listed as changed (it may be the frame pointer), so the switch saves it. Nothing is
// pushed: the red zone stays the caller's, and its unwind information is valid at every instruction
// except the last, which already runs on the other stack.
[[gnu::always_inline]] inline void* switch_context(Context& from, Context& to,
                                                   void* passed) noexcept {
  Context* from_register = &from;
  Context* to_register = &to;
  asm volatile(
      "leaq 1f(%%rip), %%rax\n\t"
      "movq %%rsp, (%%rsi)\n\t"
      "movq %%rax, 8(%%rsi)\n\t"
      "movq %%rbp, 16(%%rsi)\n\t"
      "movl 24(%%rsi), %%eax\n\t"
      "movzwl 28(%%rsi), %%ecx\n\t"
      "xorl 24(%%rdx), %%eax\n\t"
      "xorw 28(%%rdx), %%cx\n\t"
      "andl $0xffffffc0, %%eax\n\t"  // bits 0 to 5 are the sticky exception flags
      "orl %%ecx, %%eax\n\t"
      "jnz 2f\n"
      "0:\n\t"
      "movq 8(%%rdx), %%rcx\n\t"
      "movq 16(%%rdx), %%rbp\n\t"
      "movq (%%rdx), %%rsp\n\t"
      "jmpq *%%rcx\n"
      "2:\n\t"
      "ldmxcsr 24(%%rdx)\n\t"
      "fldcw 28(%%rdx)\n\t"
      "jmp 0b\n"
      "1:\n\t"
#if defined(__CET__) && (__CET__ & 1)
      "endbr64\n\t"  // an indirect jump lands here
#endif
      : "+S"(from_register), "+d"(to_register), "+D"(passed)
      :
      : "rax", "rbx", "rcx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "xmm0", "xmm1",
        "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12",
        "xmm13", "xmm14", "xmm15" ATL_RT_AVX512_REGISTERS, "st", "st(1)", "st(2)", "st(3)", "st(4)",
        "st(5)", "st(6)", "st(7)", "cc", "memory");
  return passed;
}

#undef ATL_RT_AVX512_REGISTERS

inline void prepare_context(Context& context, void* top, FiberEntry entry) noexcept {
  context = Context{};
  context.sp = top;
  context.pc = reinterpret_cast<void*>(&atl_rt_context_start);
  context.frame = reinterpret_cast<void*>(entry);
}

}  // namespace atl::runtime
