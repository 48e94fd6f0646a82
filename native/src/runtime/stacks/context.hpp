// A context: where a suspended flow of control goes on, and the switch between two of them.
//
// The switch saves what the calling convention makes a callee preserve and no more: stack pointer,
// program counter and frame pointer by hand, the other callee-saved registers by telling the
// compiler that the switch changes them, so that a caller spills only what it really holds. It is
// inline: a call would put one more entry on the CPU's stack of return addresses, and the caller's
// own return would be mispredicted after every switch.
//
// Control bits of floating point (rounding, trapped exceptions) belong to a context, as the calling
// conventions say. They are reloaded only where they differ: reloading MXCSR serialises, and its
// sticky status bits differ all the time without being anybody's.
//
// Kept out: shadow stacks (x86 CET, stack.cpp refuses to start under them) and the signal mask.
// Costs: no system call; docs/runtime-stacks.md has figures.
//
// Each kind brings `struct Context`, `prepare_context` and `switch_context`.
#pragma once

namespace atl::runtime {

// What a fresh context starts with. `passed` comes from the first switch to it. Never returns, and
// lets no exception out.
using FiberEntry = void (*)(void* passed);

}  // namespace atl::runtime

// The scheduler's, called with what a switch passes, unless that is null, on the way back from
// switch_fiber_and_return. An odd address is a flag's, a byte, plus 1: the flag is to be set to
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

namespace atl::runtime {

// Makes `context` start `entry` on the stack that ends at `top` (aligned to 16) at its first
// switch.
void prepare_context(Context& context, void* top, FiberEntry entry) noexcept;

// Goes on in `to` and leaves in `from` where to come back. Returns what the switch back passes. For
// functions that are never inlined into users' code (fiber.hpp).
void* switch_context(Context& from, Context& to, void* passed) noexcept;

}  // namespace atl::runtime
