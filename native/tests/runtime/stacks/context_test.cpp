// The switch between contexts, through fibers, so that sanitizers know of it, too. Compiled for
// x86-64, for aarch64 (run under qemu-user) and against Boost.Context.
#include <gtest/gtest.h>
#include <unistd.h>
#include <unwind.h>

#include <cfenv>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "fiber_parts.hpp"

extern "C" std::uint64_t atl_test_registers(void (*call)(void*), void* argument,
                                            std::uint64_t pattern);

namespace atl::runtime {
namespace {

StackPool& pool() {
  static StackPool stacks({});
  return stacks;
}

struct Pair {
  Fiber main = thread_fiber();
  Fiber* other = nullptr;
  std::uintptr_t seen = 0;
};
Pair* pair = nullptr;

[[gnu::noinline]] void* hop(Fiber& from, Fiber& to, std::uintptr_t passed) {
  return switch_fiber(from, to, exception_globals(), reinterpret_cast<void*>(passed));
}

void count_up(void* passed) {
  for (;;) {
    pair->seen += reinterpret_cast<std::uintptr_t>(passed);
    passed = hop(*pair->other, pair->main, pair->seen);
  }
}

TEST(Context, PassesAValueEachWay) {
  StackPool stacks({});
  Pair here;
  pair = &here;
  here.other = stacks.take(0, &count_up);
  std::uintptr_t sum = 0;
  for (std::uintptr_t i = 1; i <= 10'000; ++i) {
    sum += i;
    ASSERT_EQ(reinterpret_cast<std::uintptr_t>(hop(here.main, *here.other, i)), sum);
  }
  reset(*here.other, [](void* passed) {
    hop(*pair->other, pair->main, reinterpret_cast<std::uintptr_t>(passed) + 1);
  });
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(hop(here.main, *here.other, 7)), 8U);
  stacks.give(here.other);
}

// The first of three routines goes round by round through chains of its own frames, so that values
// of every round lie in registers and frames while others run.
int depth_sum(Routine& routine, int depth) {
  if (depth == 0) {
    routine.suspend();
    return 0;
  }
  volatile int mine = depth;
  const int below = depth_sum(routine, depth - 1);
  routine.suspend();
  return below + mine;
}

TEST(Context, FramesSurviveInterleaving) {
  std::vector<int> results(3);
  std::vector<std::unique_ptr<Routine>> routines;
  for (std::size_t i = 0; i < results.size(); ++i) {
    routines.push_back(std::make_unique<Routine>(pool(), [&results, i](Routine& self) {
      results[i] = depth_sum(self, 20 + static_cast<int>(i));
    }));
  }
  for (bool all_done = false; !all_done;) {
    all_done = true;
    for (auto& routine : routines) {
      if (!routine->done()) routine->resume();
      all_done = all_done && routine->done();
    }
  }
  EXPECT_EQ(results, (std::vector<int>{210, 231, 253}));
}

TEST(Context, PreservesCalleeSavedRegisters) {
  std::uint64_t inside = ~0ULL;
  Routine routine(pool(), [&inside](Routine& self) {
    inside = atl_test_registers([](void* routine) { static_cast<Routine*>(routine)->suspend(); },
                                &self, 0xa5a5'0000'1234'5600);
  });
  const auto resume = [](void* resumed) { static_cast<Routine*>(resumed)->resume(); };
  // The first starts it, the second finishes it: each is a switch there and one back.
  EXPECT_EQ(atl_test_registers(resume, &routine, 0x5a5a'ffff'8765'4300), 0U);
  EXPECT_EQ(atl_test_registers(resume, &routine, 0x0102'0304'0506'0700), 0U);
  EXPECT_TRUE(routine.done());
  EXPECT_EQ(inside, 0U);
}

TEST(Context, EntryFrameIsAligned) {
  std::uintptr_t rest = 1;
  Routine routine(pool(), [&rest](Routine&) {
    alignas(16) volatile char probe[16] = {};
    rest = reinterpret_cast<std::uintptr_t>(&probe[0]) % 16;
#if defined(__x86_64__)
    // Faults on a misaligned stack, as compiled code would.
    asm volatile("movaps %%xmm0, %0" : "=m"(probe));
#endif
  });
  routine.resume();
  EXPECT_EQ(rest, 0U);
}

double third(double one, double three) {
  volatile double a = one;
  volatile double b = three;
  return a / b;
}

TEST(Context, RoundingModeBelongsToTheContext) {
  const double nearest = third(1, 3);
  double first = 0;
  double second = 0;
  Routine routine(pool(), [&](Routine& self) {
    std::fesetround(FE_UPWARD);
    first = third(1, 3);
    self.suspend();
    second = third(1, 3);
    EXPECT_EQ(std::fegetround(), FE_UPWARD);
    std::fesetround(FE_TONEAREST);
  });
  routine.resume();
  EXPECT_EQ(std::fegetround(), FE_TONEAREST);
  EXPECT_EQ(third(1, 3), nearest);
  std::fesetround(FE_DOWNWARD);
  routine.resume();
  EXPECT_EQ(std::fegetround(), FE_DOWNWARD);
  std::fesetround(FE_TONEAREST);
  EXPECT_GT(first, nearest);
  EXPECT_EQ(second, first);
  EXPECT_TRUE(routine.done());
}

TEST(Context, StickyFlagsDoNotDisturb) {
  std::feclearexcept(FE_ALL_EXCEPT);
  Routine routine(pool(), [](Routine& self) {
    std::feraiseexcept(FE_DIVBYZERO);
    self.suspend();
    EXPECT_EQ(third(9, 3), 3);
  });
  routine.resume();
  std::feclearexcept(FE_ALL_EXCEPT);
  routine.resume();
  EXPECT_TRUE(routine.done());
}

#if defined(__x86_64__)
std::uint16_t x87_control() {
  std::uint16_t control = 0;
  asm volatile("fnstcw %0" : "=m"(control));
  return control;
}
void set_x87_control(std::uint16_t control) { asm volatile("fldcw %0" : : "m"(control)); }

TEST(Context, ControlWordsOfX86AreApart) {
  constexpr unsigned kFlushToZero = 1U << 15;
  const std::uint16_t usual = x87_control();
  const auto double_precision = static_cast<std::uint16_t>(usual & ~0x100);
  unsigned kept = 0;
  std::uint16_t kept_x87 = 0;
  Routine routine(pool(), [&](Routine& self) {
    _mm_setcsr(_mm_getcsr() | kFlushToZero);
    self.suspend();
    kept = _mm_getcsr() & kFlushToZero;
    _mm_setcsr(_mm_getcsr() & ~kFlushToZero);
    set_x87_control(double_precision);
    self.suspend();
    kept_x87 = x87_control();
    set_x87_control(usual);
  });
  routine.resume();
  EXPECT_EQ(_mm_getcsr() & kFlushToZero, 0U);
  routine.resume();
  EXPECT_EQ(x87_control(), usual);
  routine.resume();
  EXPECT_EQ(kept, kFlushToZero);
  EXPECT_EQ(kept_x87, double_precision);
}
#endif

// Not std::this_thread::get_id(): pthread_self() is declared const, so that a compiler may call it
// once for both sides of a switch.
[[gnu::noinline]] pid_t thread_id() { return gettid(); }

TEST(Context, GoesOnOnAnotherThread) {
  std::vector<pid_t> threads;
  Routine routine(pool(), [&threads](Routine& self) {
    for (int i = 0; i < 4; ++i) {
      threads.push_back(thread_id());
      self.suspend();
    }
  });
  routine.resume();
  std::thread([&] { routine.resume(); }).join();
  std::thread([&] {
    routine.resume();
    routine.resume();
  }).join();
  routine.resume();
  EXPECT_TRUE(routine.done());
  ASSERT_EQ(threads.size(), 4U);
  EXPECT_EQ(threads[0], thread_id());
  EXPECT_NE(threads[1], threads[0]);
  EXPECT_EQ(threads[2], threads[3]);
}

#if !defined(ATOLL_CONTEXT_BOOST)
struct Trace {
  std::vector<std::uintptr_t> frames;
  _Unwind_Reason_Code end = _URC_NO_REASON;
};

_Unwind_Reason_Code add_frame(_Unwind_Context* context, void* trace) {
  static_cast<Trace*>(trace)->frames.push_back(_Unwind_GetCFA(context));
  return _URC_NO_REASON;
}

[[gnu::noinline]] Trace walk() {
  Trace trace;
  trace.end = _Unwind_Backtrace(&add_frame, &trace);
  return trace;
}

TEST(Context, UnwindsToTheEntryAndEnds) {
  Trace before;
  Trace after;
  Routine routine(pool(), [&](Routine& self) {
    before = walk();
    self.suspend();
    after = walk();
  });
  routine.resume();
  routine.resume();
  for (const Trace& trace : {before, after}) {
    EXPECT_EQ(trace.end, _URC_END_OF_STACK);
    // walk, the body, its std::function, run, loop, the start: optimisers may join some.
    EXPECT_GE(trace.frames.size(), 4U);
    EXPECT_LE(trace.frames.size(), 16U);
    for (const std::uintptr_t frame : trace.frames) {
      EXPECT_GE(frame, reinterpret_cast<std::uintptr_t>(routine.fiber().low));
      EXPECT_LE(frame, reinterpret_cast<std::uintptr_t>(routine.fiber().top));
    }
  }
  EXPECT_EQ(before.frames.size(), after.frames.size());
}
#endif

}  // namespace
}  // namespace atl::runtime
