// The runtime in a changing process: fork(), a mask that shrinks, runtimes that come and go.
#include <dirent.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <set>
#include <string>
#include <thread>

#include "atoll/runtime/runtime.hpp"
#include "atoll/runtime/scope.hpp"
#include "atoll/runtime/this_task.hpp"
#include "runtime/parts.hpp"

namespace {

using atl::test::fib;
using atl::test::in_a_child;
using atl::test::real_cpus;
using atl::test::with_workers;

#if defined(ATL_TEST_CHILDREN_HAVE_THREADS)
TEST(Reliability, AChildOfForkIsToldAndMayMakeItsOwn) {
  auto runtime = std::make_unique<atl::Runtime>(with_workers(3));
  ASSERT_EQ(runtime->run([] { return fib(10); }), 55);
  EXPECT_EQ(in_a_child([&] {
              try {
                runtime->run([] {});
                return 1;
              } catch (const atl::RuntimeFault& fault) {
                if (std::string(fault.what()).find("fork") == std::string::npos) return 2;
              }
              runtime.reset();  // does not wait for workers that are not there
              atl::Runtime own(with_workers(2));
              return own.run([] { return fib(10); }) == 55 ? 0 : 3;
            }),
            0);
  EXPECT_EQ(runtime->run([] { return fib(12); }), 144);
}
#endif

TEST(Reliability, RuntimesComeAndGo) {
  for (int round = 0; round < 30; ++round) {
    atl::Runtime runtime(with_workers(1 + round % 4));
    if (round % 3 != 0) {
      EXPECT_EQ(runtime.run([] { return fib(8); }), 21);
    }
  }
}

// Of every thread of this process, as `taskset --all-tasks` and a cpuset do.
void bind_all_threads(const std::vector<int>& cpus) {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  for (const int cpu : cpus) CPU_SET(static_cast<std::size_t>(cpu), &mask);
  DIR* tasks = opendir("/proc/self/task");
  while (const dirent* entry = readdir(tasks)) {
    if (const int thread = std::atoi(entry->d_name)) sched_setaffinity(thread, sizeof mask, &mask);
  }
  closedir(tasks);
}

std::set<int> cpus_sat_on(const atl::Runtime& runtime) {
  std::set<int> cpus;
  for (const int core : runtime.cores()) {
    const auto& own = runtime.places().cores[static_cast<std::size_t>(core)].cpus;
    cpus.insert(own.begin(), own.end());
  }
  return cpus;
}

TEST(Reliability, WorkersFollowAMaskThatShrinksAndGrows) {
  const std::vector<int> before = real_cpus();
  ASSERT_GE(before.size(), 2U) << "needs two CPUs to lose one";
  // Two, so that four workers can sit on all there are, however many the machine has.
  const std::vector<int> both = {before[0], before[1]};
  const std::vector<int> one = {before[0]};
  bind_all_threads(both);
  {
    atl::RuntimeOptions options = with_workers(4);
    options.interval = std::chrono::milliseconds(1);
    atl::Runtime runtime(options);
    EXPECT_EQ(cpus_sat_on(runtime).size(), 2U);
    for (const auto& cpus : {one, both, one, both}) {
      bind_all_threads(cpus);
      // The answers are right throughout; the governor looks while tasks run.
      while (cpus_sat_on(runtime) != std::set<int>(cpus.begin(), cpus.end())) {
        ASSERT_EQ(runtime.run([] { return fib(14); }), 377);
      }
    }
  }
  bind_all_threads(before);
}

TEST(Reliability, AfterAYieldATaskIsToldOfTheWorkerThatItIsOnNow) {
  // It may come back on another thread: what the runtime keeps by thread and the kernel must agree.
  atl::Runtime runtime(with_workers(4));
  std::atomic<int> disagreed{0};
  runtime.run([&] {
    atl::Scope scope;
    for (int i = 0; i < 64; ++i) {
      scope.fork([&] {
        for (int turn = 0; turn < 100; ++turn) {
          atl::yield();
          const int core = atl::this_task::core();
          cpu_set_t mask;
          sched_getaffinity(0, sizeof mask, &mask);
          const int cpu = runtime.places().cores[static_cast<std::size_t>(core)].cpus.front();
          if (!CPU_ISSET(static_cast<std::size_t>(cpu), &mask)) ++disagreed;
        }
      });
    }
    scope.join();
  });
  EXPECT_EQ(disagreed, 0);
}

}  // namespace
