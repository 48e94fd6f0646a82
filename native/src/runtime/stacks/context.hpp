// A context: where a suspended flow of control continues, and the switch between two of them.
//
// The switch saves only what the calling convention makes a callee preserve: stack pointer, program
// counter and frame pointer explicitly; for the other callee-saved registers it tells the compiler
// that it changes them, so that a caller spills only what it uses. It is inline: a call would put
// one more entry on the CPU's return stack, and mispredict the caller's own return after every
// switch.
//
// Floating-point control bits (rounding, trapped exceptions) belong to a context, as the calling
// conventions require. They are reloaded only if they differ: reloading MXCSR serialises, and its
// sticky status bits differ all the time but belong to no context. They are saved by a call of its
// own, early: on a Zen 4 a switch that waits for stmxcsr takes up to 5 ns more.
//
// Not switched: shadow stacks (x86 CET; stack.cpp refuses to start under them), the signal mask.
// Makes no system call; docs/runtime-stacks.md has its cost.
//
// Each kind defines `struct Context`, `prepare_context`, `save_control` and `switch_context`.
#pragma once

namespace atl::runtime {

// The function that a new context starts. `passed` comes from the first switch to it. It must not
// return or throw.
using FiberEntry = void (*)(void* passed);

}  // namespace atl::runtime

// Defined by the scheduler. Called on the way back from switch_fiber_and_return with what a switch
// passes, unless that is null. An odd address is that of a flag, a byte, plus 1: it must be set to
// false, which that switch may do itself.
extern "C" [[gnu::visibility("hidden")]] void atl_rt_arrived(void* passed) noexcept;

#if defined(ATOLL_CONTEXT_BOOST)
#include "context_boost.hpp"
#elif defined(__x86_64__)
#include "context_x86_64.hpp"
#elif defined(__aarch64__)
#include "context_aarch64.hpp"
#else
#error "no context switch for this processor: configure with ATOLL_CONTEXT=boost"
#endif

// For a function that always switches before it returns: the CPU predicts a return from a stack of
// its own, where the other fibers have put newer addresses. A jump it predicts from where it went
// before. Not where the fibers return to one place, as those that yield often do, nor where most
// calls do not switch: there a return is right, and a jump puts the CPU's stack out of step.
#ifndef ATL_RT_RETURNS_BY_JUMP
#define ATL_RT_RETURNS_BY_JUMP
#endif

namespace atl::runtime {

// Makes `context` start `entry` on the stack that ends at `top` (aligned to 16) at its first
// switch.
void prepare_context(Context& context, void* top, FiberEntry entry) noexcept;

// Saves the floating-point control bits in the running context.
void save_control(Context& context) noexcept;

// After save_control(from). Continues in `to` and stores in `from` where to return. Returns what
// the switch back passes. For functions that are never inlined into users' code (fiber.hpp).
void* switch_context(Context& from, Context& to, void* passed) noexcept;

}  // namespace atl::runtime
