#include "fiber.hpp"

#include <cxxabi.h>
#include <pthread.h>

#include <cstdio>
#include <cstdlib>

namespace atl::runtime {

ExceptionGlobals& exception_globals() noexcept {
  return *reinterpret_cast<ExceptionGlobals*>(abi::__cxa_get_globals());
}

void report_broken_canary(const Fiber& fiber) noexcept {
  std::fprintf(stderr,
               "atoll: task stack overflow: the canary below a stack of %zu KiB (at %p) is "
               "overwritten, memory next to it is damaged; use StackOptions::Kind::guarded to find "
               "the task, "
               "or bigger StackOptions.bytes\n",
               fiber.bytes() >> 10, static_cast<void*>(fiber.low));
  std::abort();
}

Fiber thread_fiber() {
  Fiber fiber;
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
    void* low = nullptr;
    std::size_t bytes = 0;
    pthread_attr_getstack(&attributes, &low, &bytes);
    pthread_attr_destroy(&attributes);
    fiber.low = static_cast<std::byte*>(low);
    fiber.top = fiber.low + bytes;
  }
#if defined(ATL_RT_TSAN)
  fiber.tsan_fiber = __tsan_get_current_fiber();
#endif
  return fiber;
}

Fiber caller_fiber() {
#if defined(ATL_RT_ASAN) || defined(ATL_RT_TSAN)
  thread_local const Fiber fiber = thread_fiber();
  return fiber;
#else
  return {};
#endif
}

#if defined(ATL_RT_ASAN) || defined(ATL_RT_TSAN)

namespace {

// What a switch passes in addition to `passed`: the arriving fiber must identify itself to ASan.
struct Hop {
  Fiber* to;
  void* passed;
};

#if defined(__clang__)
#define ATL_RT_UNINSTRUMENTED __attribute__((noinline, no_sanitize("address", "thread")))
#else
#define ATL_RT_UNINSTRUMENTED \
  __attribute__((noinline, no_sanitize("address"), no_sanitize("thread")))
#endif

ATL_RT_UNINSTRUMENTED void* arrive(void* passed) noexcept {
  const Hop hop = *static_cast<Hop*>(passed);
#if defined(ATL_RT_ASAN)
  __sanitizer_finish_switch_fiber(hop.to->fake_stack, nullptr, nullptr);
#endif
  return hop.passed;
}

ATL_RT_UNINSTRUMENTED void enter(void* passed) {
  const FiberEntry entry = static_cast<Hop*>(passed)->to->entry;
  entry(arrive(passed));
}

}  // namespace

// Uninstrumented: an instrumented function would enter on one fiber and exit on another.
ATL_RT_UNINSTRUMENTED void* finish_switch(Fiber& from, Fiber& to, ExceptionGlobals& here,
                                          void* passed) noexcept {
  check_canary(from);
  swap_exceptions(from, to, here);
  Hop hop{&to, passed};
#if defined(ATL_RT_TSAN)
  if (to.tsan_fiber == nullptr) to.tsan_fiber = __tsan_create_fiber(0);
  // With synchronisation (flags 0): one fiber after another uses a worker's own data.
  __tsan_switch_to_fiber(to.tsan_fiber, 0);
#endif
#if defined(ATL_RT_ASAN)
  __sanitizer_start_switch_fiber(&from.fake_stack, to.low, to.bytes());
#endif
  return arrive(switch_context(from.context, to.context, &hop));
}

void reset(Fiber& fiber, FiberEntry entry) noexcept {
  fiber.entry = entry;
  fiber.exceptions = {};
#if defined(ATL_RT_ASAN)
  // Forgotten frames left their red zones.
  __asan_unpoison_memory_region(fiber.low, fiber.bytes());
#endif
  forget(fiber);
  prepare_context(fiber.context, fiber.top, &enter);
}

ATL_RT_UNINSTRUMENTED void forget(Fiber& fiber) noexcept {
#if defined(ATL_RT_TSAN)
  if (fiber.tsan_fiber != nullptr) __tsan_destroy_fiber(fiber.tsan_fiber);
  fiber.tsan_fiber = nullptr;
#endif
#if defined(ATL_RT_ASAN)
  if (fiber.fake_stack == nullptr) return;
  // Only a fiber itself can give its fake stack up, so for a moment this thread passes for it.
  void* mine = nullptr;
  const void* low = nullptr;
  std::size_t bytes = 0;
  __sanitizer_start_switch_fiber(&mine, fiber.low, fiber.bytes());
  __sanitizer_finish_switch_fiber(fiber.fake_stack, &low, &bytes);
  __sanitizer_start_switch_fiber(nullptr, low, bytes);
  __sanitizer_finish_switch_fiber(mine, nullptr, nullptr);
  fiber.fake_stack = nullptr;
#endif
}

#else

void reset(Fiber& fiber, FiberEntry entry) noexcept {
  fiber.exceptions = {};
  prepare_context(fiber.context, fiber.top, entry);
}

#endif

}  // namespace atl::runtime
