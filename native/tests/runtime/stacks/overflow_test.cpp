// What happens at the ends of a stack: a message and the signal, not corruption.
#include "stacks/overflow.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <csetjmp>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include "atoll/runtime/event.hpp"
#include "atoll/runtime/runtime.hpp"
#include "atoll/runtime/task.hpp"
#include "fiber_parts.hpp"
#include "runtime/parts.hpp"
#include "scheduler/worker.hpp"

namespace atl::runtime {
namespace {

#if defined(__SANITIZE_THREAD__)
// TSan runs a handler of SIGSEGV as any other, but dies by its own exit code.
const auto kBySignal = [](int) { return true; };
#else
const testing::KilledBySignal kBySignal(SIGSEGV);
#endif

volatile bool endless = true;

// Recursion that no optimiser turns into a loop.
[[gnu::noinline]] int recurse(int depth) {
  volatile char frame[512];
  frame[0] = static_cast<char>(depth);
  return endless ? recurse(depth + 1) + frame[0] : 0;
}

const Fiber* none_running() noexcept { return nullptr; }

void on_fiber(StackOptions options, const std::function<void(Routine&)>& body,
              GuardSupport support = guard_support()) {
  install_overflow_handler(&none_running);
  const AlternateStack alternate;
  StackPool pool(options, {}, support);
  Routine routine(pool, body);
  routine.resume();
}

class OverflowDeath : public testing::Test {
 protected:
  OverflowDeath() { testing::FLAGS_gtest_death_test_style = "threadsafe"; }
};

TEST_F(OverflowDeath, RecursionEndsInAMessage) {
  EXPECT_EXIT(on_fiber({}, [](Routine&) { recurse(0); }), kBySignal,
              "atoll: task stack overflow: a task needs more than the 256 KiB of its stack .*"
              "StackOptions.bytes");
}

TEST_F(OverflowDeath, AlsoWithGuardsByMprotect) {
  EXPECT_EXIT(on_fiber({.bytes = 64 << 10}, [](Routine&) { recurse(0); },
                       {.install = false, .map_limit = 100}),
              kBySignal, "task stack overflow: a task needs more than the 64 KiB");
}

TEST_F(OverflowDeath, AlsoOnAnotherThread) {
  EXPECT_EXIT(std::thread([] { on_fiber({}, [](Routine&) { recurse(0); }); }).join(), kBySignal,
              "task stack overflow");
}

TEST_F(OverflowDeath, PastTheTopIsSaidToBeAPointer) {
  EXPECT_EXIT(on_fiber({},
                       [](Routine& self) {
                         const Fiber& fiber = self.fiber();
                         std::byte* past = fiber.low + (256 << 10);
                         *static_cast<volatile std::byte*>(past) = std::byte{1};
                       }),
              kBySignal, "past the top of a task's stack");
}

// Touches the lowest byte of a frame that is larger than a task's stack and its guard.
[[gnu::noinline]] int use_large_frame() {
  volatile char frame[400 << 10];
  frame[0] = 1;
  return frame[0];
}

TEST_F(OverflowDeath, AFrameLargerThanTheStackIsAnOverflow) {
  EXPECT_EXIT(atl::Runtime(atl::test::with_workers(2)).run([] { use_large_frame(); }), kBySignal,
              "task stack overflow: a task needs more than the 256 KiB");
}

// Code that is compiled without -fstack-clash-protection skips its own guard, and may hit the next
// one. The lowest stack of a chunk has none below: then a task on another stack does it.
#if defined(__x86_64__)
void skip_a_guard() {
  const Fiber& fiber = Worker::here()->fiber();
  const std::byte* const below = fiber.low - guard_bytes() - (256 << 10) - 64;
  if (find_guard(below)) {
    asm volatile("mov %%rsp, %%rbx; mov %0, %%rsp; push %%rax; mov %%rbx, %%rsp" ::"r"(below)
                 : "rbx", "memory");
  }
  atl::Event done;
  atl::spawn([&] {
    skip_a_guard();
    done.set();
  }).detach();
  done.wait();
}

TEST_F(OverflowDeath, AFrameThatSkipsItsGuardIsAnOverflow) {
  EXPECT_EXIT(atl::Runtime(atl::test::with_workers(1)).run(skip_a_guard), kBySignal,
              "task stack overflow");
}
#endif

void overwrite_canary(Fiber& fiber) { const_cast<std::uint64_t*>(fiber.canary)[3] = 0; }

TEST_F(OverflowDeath, CanaryIsCheckedAtSuspension) {
  EXPECT_DEATH(on_fiber({.kind = StackKind::slab},
                        [](Routine& self) {
                          overwrite_canary(self.fiber());
                          self.suspend();
                        }),
               "the canary below a stack of 255 KiB .* is overwritten");
}

TEST_F(OverflowDeath, CanaryIsCheckedWhenGivenBack) {
  EXPECT_DEATH(
      {
        StackPool pool({.kind = StackKind::slab});
        Fiber* fiber = pool.take(0, [](void*) { std::abort(); });
        overwrite_canary(*fiber);
        pool.give(fiber);
      },
      "canary below a stack");
}

TEST_F(OverflowDeath, RecursionOnASlabBreaksTheCanary) {
  // The stack below takes the damage, as documented; it is not in use here.
  const auto smash = [](Routine& self) {
    std::byte* const from = self.fiber().low - 64;
    std::memset(from, 0x5a, 4096);
    self.suspend();
  };
  EXPECT_DEATH(on_fiber({.kind = StackKind::slab}, smash), "canary below a stack");
}

// A handler installed before ours still gets the faults that are not ours.
sigjmp_buf escape;
volatile sig_atomic_t seen_signal = 0;
void* volatile seen_address = nullptr;
volatile sig_atomic_t mask_held = 0;

void earlier_handler(int number, siginfo_t* info, void*) {
  sigset_t mask;
  pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  mask_held = sigismember(&mask, SIGUSR2);
  seen_signal = number;
  seen_address = info->si_addr;
  siglongjmp(escape, 1);
}

void fault_elsewhere() {
  struct sigaction earlier{};
  earlier.sa_sigaction = &earlier_handler;
  earlier.sa_flags = SA_SIGINFO;
  sigemptyset(&earlier.sa_mask);
  sigaddset(&earlier.sa_mask, SIGUSR2);
  sigaction(SIGSEGV, &earlier, nullptr);
  install_overflow_handler(&none_running);
  install_overflow_handler(&none_running);
  const AlternateStack alternate;
  void* const page = mmap(nullptr, page_bytes(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (sigsetjmp(escape, 1) == 0) {
    *static_cast<volatile char*>(page) = 1;
    std::_Exit(1);
  }
  const bool right = seen_signal == SIGSEGV && seen_address == page && mask_held == 1;
  std::fputs(right ? "earlier handler called\n" : "earlier handler: wrong arguments\n", stderr);
  std::_Exit(right ? 0 : 2);
}

TEST_F(OverflowDeath, OtherFaultsGoToTheEarlierHandler) {
  EXPECT_EXIT(fault_elsewhere(), testing::ExitedWithCode(0), "earlier handler called");
}

void fault_by_default() {
  std::signal(SIGSEGV, SIG_DFL);
  std::signal(SIGBUS, SIG_DFL);
  install_overflow_handler(&none_running);
}

TEST_F(OverflowDeath, WithoutOneTheDefaultHappens) {
  EXPECT_EXIT(
      {
        fault_by_default();
        *reinterpret_cast<volatile char*>(sysconf(_SC_PAGESIZE) / 2) = 1;
      },
      testing::KilledBySignal(SIGSEGV), "");
  EXPECT_EXIT(
      {
        fault_by_default();
        kill(getpid(), SIGBUS);
      },
      testing::KilledBySignal(SIGBUS), "");
}

TEST(AlternateStackTest, PutsBackWhatWasThere) {
  stack_t before;
  stack_t inside;
  stack_t after;
  sigaltstack(nullptr, &before);
  {
    const AlternateStack outer;
    const AlternateStack alternate;
    sigaltstack(nullptr, &inside);
  }
  sigaltstack(nullptr, &after);
  EXPECT_EQ(inside.ss_flags & SS_DISABLE, 0);
  EXPECT_GE(inside.ss_size, 64U << 10);
  EXPECT_NE(inside.ss_sp, before.ss_sp);
  EXPECT_EQ(after.ss_sp, before.ss_sp);
  EXPECT_EQ(after.ss_flags, before.ss_flags);
}

}  // namespace
}  // namespace atl::runtime
