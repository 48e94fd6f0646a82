// Without a free stack, what cannot suspend reports it and loses nothing, and a join, which has to
// wait, ends the program rather than leave what other threads still write to.
#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/resource.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <new>
#include <vector>

#include "atoll/runtime/blocking.hpp"
#include "atoll/runtime/event.hpp"
#include "atoll/runtime/runtime.hpp"
#include "atoll/runtime/scope.hpp"
#include "atoll/runtime/this_task.hpp"
#include "atoll/tasks.h"
#include "runtime/parts.hpp"

// Sanitizers need address space of their own.
#if defined(ATL_TEST_CHILDREN_HAVE_THREADS)

namespace {
thread_local std::size_t refused_bytes = ~std::size_t{0};  // from here on
}

void* operator new(std::size_t bytes) {
  void* const memory = bytes < refused_bytes ? std::malloc(bytes) : nullptr;
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace {

using atl::test::in_a_child;

// Each stack is a separate mapping, and there is one worker, so only one stack runs.
constexpr std::size_t kStackBytes = std::size_t{64} << 20;

atl::RuntimeOptions one_worker_with_large_stacks() {
  atl::RuntimeOptions options = atl::test::with_workers(1);
  options.stacks.bytes = kStackBytes;
  return options;
}

// In a child. The governor's first memory would else be an arena of its own, which glibc makes with
// more address space than it keeps: counted in just that moment it would leave room for a stack.
void share_one_arena() { mallopt(M_ARENA_MAX, 1); }

// From here on nothing as large as a stack can be mapped.
void use_address_space_up() {
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlim_t most = pages * static_cast<std::size_t>(getpagesize()) + kStackBytes / 2;
  const rlimit limit{most, most};
  setrlimit(RLIMIT_AS, &limit);
}

bool is_fault(auto&& call) {
  try {
    call();
    return false;
  } catch (const atl::RuntimeFault&) {
    return true;
  }
}

TEST(Exhaustion, WhatCannotSuspendSaysSoAndLosesNothing) {
  EXPECT_EQ(in_a_child([] {
              share_one_arena();
              atl::Runtime runtime(one_worker_with_large_stacks());
              return runtime.run([] {
                use_address_space_up();
                int ran = 0;
                atl::Task<> other = atl::spawn([&ran] { ++ran; });
                atl::Event never;
                for (int times = 0; times < 3; ++times) {
                  if (!is_fault([&] { never.wait(); })) return 1;
                }
                int yields_that_failed = 0;
                for (int times = 0; times < 200; ++times) {
                  yields_that_failed += is_fault([] { atl::yield(); }) ? 1 : 0;
                }
                if (yields_that_failed == 0) return 2;
                for (int times = 0; times < 200; ++times) atoll_rt_yield();  // lets nothing out
                if (!is_fault([] { atl::blocking([] {}); })) return 3;
                if (ran != 0) return 4;
                other.join();  // runs it on this stack
                return ran == 1 ? 0 : 5;
              });
            }),
            0);
}

// The deque holds 1024 words, and then asks for 16 KiB.
TEST(Exhaustion, WhatCannotBeSpawnedIsNotAwaited) {
  static constexpr std::size_t kTries = 5000;
  atl::Runtime runtime(atl::test::with_workers(1));
  runtime.run([] {
    std::size_t ran = 0;
    std::vector<atl::Task<>> tasks;
    tasks.reserve(kTries);
    refused_bytes = 16 << 10;
    EXPECT_THROW(while (tasks.size() < kTries) tasks.push_back(atl::spawn([&ran] { ++ran; })),
                 std::bad_alloc);
    refused_bytes = ~std::size_t{0};
    EXPECT_LT(tasks.size(), kTries);
    for (atl::Task<>& task : tasks) task.join();
    EXPECT_EQ(ran, tasks.size());
  });
  runtime.run([] {
    std::size_t forked = 0;
    std::size_t ran = 0;
    atl::Scope scope;
    refused_bytes = 32 << 10;
    EXPECT_THROW(for (; forked < kTries; ++forked) scope.fork([&ran] { ++ran; }), std::bad_alloc);
    refused_bytes = ~std::size_t{0};
    scope.join();
    EXPECT_EQ(ran, forked);
  });
}

// All of them are made ready at once for a worker that is not the one that wakes them.
TEST(Exhaustion, WhatIsMadeReadyElsewhereNeedsNoMemory) {
  static constexpr int kTasks = 200;
  atl::Runtime runtime(atl::test::with_workers(2));
  const auto wake_all = [] {
    atl::Event woken;
    std::atomic<int> waiting{0};
    std::vector<atl::Task<>> tasks;
    for (int task = 0; task < kTasks; ++task) {
      tasks.push_back(atl::spawn(atl::on_worker(1), [&] {
        ++waiting;
        woken.wait();
      }));
    }
    while (waiting < kTasks) atl::yield();
    refused_bytes = 0;
    woken.set();
    refused_bytes = ~std::size_t{0};
    for (atl::Task<>& task : tasks) task.join();
  };
  runtime.spawn(atl::on_worker(0), wake_all).join();
}

TEST(Exhaustion, ARuntimeWithoutAStackIsAFault) {
  EXPECT_EQ(in_a_child([] {
              use_address_space_up();
              return is_fault([] { atl::Runtime runtime(one_worker_with_large_stacks()); }) ? 0 : 1;
            }),
            0);
}

TEST(Exhaustion, AJoinThatCannotWaitEndsTheProgram) {
  EXPECT_EXIT(
      {
        share_one_arena();
        atl::Runtime runtime(one_worker_with_large_stacks());
        runtime.run([] {
          use_address_space_up();
          atl::Task<> first = atl::spawn([] {});
          atl::Task<> second = atl::spawn([] {});
          first.join();  // it is not on top, so it needs a loop
        });
      },
      testing::KilledBySignal(SIGABRT), "no address space for 1 stacks");
}

}  // namespace

#endif
