// Counts instead of times: how many system calls and locked instructions the runtime's operations
// cost, with 1, 2, 8 and 64 workers. A count is the same on every machine.
//
// System calls: futex and membarrier go through libc's `syscall`, which this program replaces.
// Locked instructions: the processor stops after each instruction of a piece of code (the trap
// flag), and the handler looks at the next one.
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <ucontext.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdint>
#include <thread>
#include <vector>

#include "atoll/runtime.hpp"
#include "runtime/parts.hpp"
#include "scheduler/team.hpp"

// Sanitizers add calls and locks of their own.
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)

namespace {
std::atomic<long> futex_calls{0};
std::atomic<long> membarrier_calls{0};
}  // namespace

extern "C" long syscall(long number, ...) noexcept {
  if (number == SYS_futex) futex_calls.fetch_add(1, std::memory_order_relaxed);
  if (number == SYS_membarrier) membarrier_calls.fetch_add(1, std::memory_order_relaxed);
  va_list list;
  va_start(list, number);
  const long first = va_arg(list, long);
  const long second = va_arg(list, long);
  const long third = va_arg(list, long);
  register long fourth asm("r10") = va_arg(list, long);
  register long fifth asm("r8") = va_arg(list, long);
  register long sixth asm("r9") = va_arg(list, long);
  va_end(list);
  long result = number;
  asm volatile("syscall"
               : "+a"(result)
               : "D"(first), "S"(second), "d"(third), "r"(fourth), "r"(fifth), "r"(sixth)
               : "rcx", "r11", "memory");
  if (result < 0 && result > -4096) {
    errno = static_cast<int>(-result);
    return -1;
  }
  return result;
}

namespace {

using atl::test::fib;

struct Calls {
  long futex;
  long membarrier;
};

template <class Call>
Calls system_calls_of(Call&& call) {
  const Calls before{futex_calls, membarrier_calls};
  call();
  return {futex_calls - before.futex, membarrier_calls - before.membarrier};
}

// ---- Locked instructions ----------------------------------------------------------------------

constexpr unsigned long kTrapFlag = 0x100;
std::atomic<long> locked{0};
std::atomic<long> steps{0};

// Whether the instruction there locks the bus: a lock prefix, or xchg with memory.
bool locks(const std::uint8_t* at) {
  for (;; ++at) {
    switch (*at) {
      case 0xf0: return true;
      case 0x26:
      case 0x2e:
      case 0x36:
      case 0x3e:
      case 0x64:
      case 0x65:
      case 0x66:
      case 0x67:
      case 0xf2:
      case 0xf3: continue;
      default: break;
    }
    break;
  }
  if ((*at & 0xf0) == 0x40) ++at;  // REX
  return (*at == 0x86 || *at == 0x87) && at[1] >> 6 != 3;
}

void on_step(int, siginfo_t*, void* context) {
  const auto* const machine = &static_cast<ucontext_t*>(context)->uc_mcontext;
  const auto* const next = reinterpret_cast<const std::uint8_t*>(machine->gregs[REG_RIP]);
  ++steps;
  if (locks(next)) ++locked;
}

[[gnu::noinline]] void trap(bool on) {
  if (on) {
    asm volatile("pushfq\n\torq %0, (%%rsp)\n\tpopfq" ::"i"(kTrapFlag) : "cc", "memory");
  } else {
    asm volatile("pushfq\n\tandq %0, (%%rsp)\n\tpopfq" ::"i"(~kTrapFlag) : "cc", "memory");
  }
}

// Of one call, on this thread; the first calls do not count. Restores the signal's action.
template <class Call>
double locked_instructions_of(Call&& call) {
  constexpr int kTimes = 50;
  for (int i = 0; i < kTimes; ++i) call();
  struct sigaction stepping{};
  struct sigaction before{};
  stepping.sa_sigaction = on_step;
  stepping.sa_flags = SA_SIGINFO;
  sigaction(SIGTRAP, &stepping, &before);
  locked = 0;
  steps = 0;
  trap(true);
  for (int i = 0; i < kTimes; ++i) call();
  trap(false);
  sigaction(SIGTRAP, &before, nullptr);
  EXPECT_GT(steps, kTimes) << "nothing was stepped through";
  return static_cast<double>(locked.load()) / kTimes;
}

class Counts : public testing::TestWithParam<int> {
 protected:
  static atl::RuntimeOptions options() {
    atl::RuntimeOptions options = atl::test::with_workers(GetParam());
    options.places = atl::synthetic_places("node:2 chiplet:8 core:8", atl::test::real_cpus());
    options.interval = std::chrono::hours(1);  // no governor in between
    return options;
  }

  // Calls it in a task of worker 0, while every other worker is in a task of its own.
  template <class Call>
  static void beside_busy_workers(Call&& call) {
    atl::Runtime runtime(options());
    std::atomic<int> inside{0};
    std::atomic<bool> over{false};
    std::vector<atl::Task<>> others;
    for (int rank = 1; rank < runtime.workers(); ++rank) {
      others.push_back(runtime.spawn(atl::on_worker(rank), [&] {
        ++inside;
        while (!over) std::this_thread::yield();
      }));
    }
    while (inside < runtime.workers() - 1) std::this_thread::yield();
    std::atomic<bool> alone{false};
    auto done = runtime.spawn(atl::on_worker(0), [&] {
      while (!alone) std::this_thread::yield();
      call();
      over = true;
    });
    // From here to the end of the call this thread makes no call of its own that would count: it
    // has woken the worker, and does not sleep until it joins.
    alone = true;
    while (!over) std::this_thread::yield();
    done.join();
    for (auto& other : others) other.join();
  }
};

TEST_P(Counts, ForksScopesTasksAndYieldsCallNoKernel) {
  beside_busy_workers([] {
    const auto expect_none = [](const char* what, auto&& call) {
      call();  // its first stacks and memory
      const Calls calls = system_calls_of(call);
      EXPECT_EQ(calls.futex, 0) << what;
      EXPECT_EQ(calls.membarrier, 0) << what;
    };
    expect_none("fork", [] { EXPECT_EQ(fib(15), 610); });
    expect_none("scope", [] {
      atl::Scope scope;
      for (int i = 0; i < 100; ++i) scope.fork([] {});
      scope.join();
    });
    expect_none("spawn", [] {
      std::vector<atl::Task<>> tasks;
      for (int i = 0; i < 100; ++i) tasks.push_back(atl::spawn([] {}));
      for (auto& task : tasks) task.join();
    });
    expect_none("yield", [] {
      auto other = atl::spawn([] {
        for (int i = 0; i < 100; ++i) atl::yield();
      });
      for (int i = 0; i < 100; ++i) atl::yield();
      other.join();
    });
    expect_none("event", [] {
      for (int i = 0; i < 100; ++i) {
        atl::Event event;
        auto waits = atl::spawn([&] { event.wait(); });
        atl::yield();
        event.set();
        waits.join();
      }
    });
    expect_none("barrier", [] {
      atl::Barrier barrier(20);
      atl::Scope scope;
      for (int party = 0; party < 20; ++party) {
        scope.fork([&] {
          for (int round = 0; round < 5; ++round) barrier.arrive_and_wait();
        });
      }
      scope.join();
    });
  });
}

// While the workers sleep, a thread that is no worker needs no kernel for a run that wakes nobody.
TEST_P(Counts, ARunFromOutsideCallsNoKernel) {
  atl::Runtime runtime(options());
  const auto id = [] { return std::this_thread::get_id(); };
  while (runtime.team().parking.committed() < runtime.workers()) std::this_thread::yield();
  EXPECT_EQ(runtime.run(id), id());  // the thread's first
  constexpr int kRuns = 100;
  const Calls calls = system_calls_of([&] {
    for (int run = 0; run < kRuns; ++run) EXPECT_EQ(runtime.run(id), id());
  });
  EXPECT_EQ(calls.futex, 0);
  EXPECT_EQ(calls.membarrier, 0);
  const double locked = locked_instructions_of([&] { runtime.run([] {}); });
  EXPECT_LE(locked, 16) << "whatever the number of workers";
}

// A worker calls the kernel to fall asleep and to wake another, and for nothing else: however often
// it searches, the calls are as many as the sleeps and the wakes.
TEST_P(Counts, CallsOfATreeAreThoseOfSleepsAndWakes) {
  atl::Runtime runtime(options());
  const auto sleeps_and_wakes = [&] {
    std::uint64_t sum = 0;
    for (const atl::Counts& counts : runtime.counts()) sum += counts.parks + counts.wakes;
    return static_cast<long>(sum);
  };
  runtime.run([] { return fib(10); });
  const long before = sleeps_and_wakes();
  const Calls calls = system_calls_of([&] {
    for (int times = 0; times < 20; ++times) EXPECT_EQ(runtime.run([] { return fib(16); }), 987);
  });
  const long events = sleeps_and_wakes() - before + 2 * 20 + GetParam();  // and `run`'s own
  RecordProperty("futex", std::to_string(calls.futex));
  RecordProperty("membarrier", std::to_string(calls.membarrier));
  RecordProperty("events", std::to_string(events));
  EXPECT_LE(calls.futex, 2 * events);
  EXPECT_LE(calls.membarrier, 2 * events);
}

TEST_P(Counts, LockedInstructionsOfForksAndTasks) {
  beside_busy_workers([] {
    const auto most = [](const char* what, double most, auto&& call) {
      const double found = locked_instructions_of(call);
      EXPECT_LE(found, most) << what;
    };
    most("fork", 0, [] { atl::fork([] {}).join(); });
    most("forks", 0, [] {
      auto first = atl::fork([] {});
      auto second = atl::fork([] {});
      auto third = atl::fork([] {});
      third.join();
      second.join();
      first.join();
    });
    most("scope", 0, [] {
      atl::Scope scope;
      for (int i = 0; i < 3; ++i) scope.fork([] {});
      scope.join();
    });
    most("spawn", 3, [] { atl::spawn([] {}).join(); });
    most("yield", 1, [] { atl::yield(); });
    // The wait, `set`, the join, and two counts of the domain, for tasks of worker 0 only; now and
    // then a fair turn.
    most("task that waits", 5.5, [] {
      atl::Event event;
      bool waits = false;
      auto task = atl::spawn([&] {
        waits = true;
        event.wait();
      });
      while (!waits) atl::yield();
      event.set();
      task.join();
    });
  });
}

INSTANTIATE_TEST_SUITE_P(Workers, Counts, testing::Values(1, 2, 8, 64),
                         [](const auto& info) { return std::to_string(info.param); });

}  // namespace

#endif
