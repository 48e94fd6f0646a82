// A fiber: a stack, the context that is suspended on it, and the hidden thread state that must
// follow it. Its control block is at the top of its own stack, so a suspended fiber with small
// frames keeps one page of memory (docs/runtime-stacks.md).
//
// What follows a fiber from thread to thread: registers, floating-point control bits, the chain of
// caught exceptions and the count of uncaught ones. What does not: thread-locals, errno, the signal
// mask. A compiler may keep the address of a thread-local across a switch, so access them only
// through functions that are not inlined.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "context.hpp"
#include "sanitizers.hpp"

namespace atl::runtime {

// The C++ runtime's state of exceptions of one thread, in the Itanium C++ ABI's layout
// (__cxa_eh_globals).
struct ExceptionGlobals {
  void* caught = nullptr;  // exceptions whose handlers are running, innermost first
  unsigned uncaught = 0;   // thrown and not yet caught

  [[nodiscard]] bool any() const {
    return (reinterpret_cast<std::uintptr_t>(caught) | uncaught) != 0;
  }
};

// The calling thread's; valid until the thread ends. A worker gets it once and keeps it.
ExceptionGlobals& exception_globals() noexcept;

// The owner of a fiber may write it; handing it to another thread must synchronise.
struct alignas(64) Fiber {
  Context context;              // where it continues; undefined while it runs
  ExceptionGlobals exceptions;  // of a suspended fiber; none while it runs
  void* user[4] = {};           // the scheduler's
  std::uint64_t link = 0;       // of the queue that it is in while it is ready

  Fiber* next = nullptr;                  // of the pool's list
  std::byte* low = nullptr;               // the lowest byte it may use
  std::byte* top = nullptr;               // where its frames begin
  const std::uint64_t* canary = nullptr;  // kCanaryWords words below `low`; null: a guard
  int node = 0;                           // whose pool it is from, the OS index
  bool trimmed = false;  // the pool's: its lower pages have gone back to the system
#if defined(ATL_RT_ASAN) || defined(ATL_RT_TSAN)
  FiberEntry entry = nullptr;
  void* fake_stack = nullptr;  // ASan's, of the frames that it keeps off the stack
  void* tsan_fiber = nullptr;
#endif

  [[nodiscard]] std::size_t bytes() const { return static_cast<std::size_t>(top - low); }
};

inline constexpr std::uint64_t kCanary = 0x9e3779b97f4a7c15;  // no pointer, no small number
inline constexpr int kCanaryWords = 8;                        // a cache line

// The fiber's stack overflowed its low end (slab mode): reports it and aborts.
[[noreturn]] void report_broken_canary(const Fiber& fiber) noexcept;

inline void check_canary(const Fiber& fiber) noexcept {
  if (fiber.canary == nullptr) return;
  std::uint64_t changed = 0;
  for (int i = 0; i < kCanaryWords; ++i) changed |= fiber.canary[i] ^ kCanary;
  if (changed != 0) [[unlikely]]
    report_broken_canary(fiber);
}

// The calling thread's own stack as a fiber, to switch away from and back to.
Fiber thread_fiber();

// The same for a thread that comes often: without bounds, except where a sanitizer wants them.
Fiber caller_fiber();

inline void swap_exceptions(Fiber& from, Fiber& to, ExceptionGlobals& here) noexcept {
  if (here.any() || to.exceptions.any()) [[unlikely]] {
    from.exceptions = here;
    here = std::exchange(to.exceptions, {});
  }
}

// Suspends `from`, the caller's, and continues in `to`. `here` is exception_globals() of this
// thread. Returns what the switch back to `from` passes, perhaps on another thread: everything
// known about the old thread is stale then, also `here`.
//
// In two parts for callers that have something to do in between (context.hpp): the second one is
// the switch.
//
// The caller must be a function that is not inlined into users' code: the compiler then need not
// know which wide registers (AVX-512, SVE) their code has alive.
inline void begin_switch(Fiber& from) noexcept { save_control(from.context); }
#if defined(ATL_RT_ASAN) || defined(ATL_RT_TSAN)
void* finish_switch(Fiber& from, Fiber& to, ExceptionGlobals& here, void* passed) noexcept;
#else
[[gnu::always_inline]] inline void* finish_switch(Fiber& from, Fiber& to, ExceptionGlobals& here,
                                                  void* passed) noexcept {
  if (from.canary != nullptr) [[unlikely]]
    check_canary(from);
  swap_exceptions(from, to, here);
  return switch_context(from.context, to.context, passed);
}
#endif
[[gnu::always_inline]] inline void* switch_fiber(Fiber& from, Fiber& to, ExceptionGlobals& here,
                                                 void* passed) noexcept {
  begin_switch(from);
  return finish_switch(from, to, here, passed);
}

// As finish_switch, as the last thing that a function does, which then returns by way of
// atl_rt_arrived. It passes `flag`
// (context.hpp), which is set to false once the old stack is left. For fibers without a canary.
#if defined(ATL_RT_SWITCH_AND_RETURN) && !defined(ATL_RT_ASAN) && !defined(ATL_RT_TSAN)
inline void switch_fiber_and_return(Fiber& from, Fiber& to, ExceptionGlobals& here,
                                    std::atomic<bool>& flag) noexcept {
  swap_exceptions(from, to, here);
  atl_rt_switch_and_return(&from.context, &to.context, reinterpret_cast<std::byte*>(&flag) + 1);
}
#else
[[gnu::always_inline]] inline void switch_fiber_and_return(Fiber& from, Fiber& to,
                                                           ExceptionGlobals& here,
                                                           std::atomic<bool>& flag) noexcept {
  void* const passed = finish_switch(from, to, here, reinterpret_cast<std::byte*>(&flag) + 1);
  if (passed != nullptr) atl_rt_arrived(passed);
}
#endif

// Makes `fiber` start `entry` from the top of its stack at the next switch to it. Forgets its
// suspended frames without unwinding them. The entry gets what that switch passes.
void reset(Fiber& fiber, FiberEntry entry) noexcept;

// Frees a sanitizer's data for a fiber that will not run again. Not for the running one.
#if defined(ATL_RT_ASAN) || defined(ATL_RT_TSAN)
void forget(Fiber& fiber) noexcept;
#else
inline void forget(Fiber&) noexcept {}
#endif

}  // namespace atl::runtime
