// The runtime where the ground moves: fork(), a mask that shrinks, runtimes that come and go.
#include <dirent.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <set>
#include <string>
#include <thread>

#include "atoll/runtime/fork.hpp"
#include "atoll/runtime/runtime.hpp"
#include "atoll/runtime/scope.hpp"
#include "atoll/runtime/this_task.hpp"
#include "runtime_parts.hpp"

namespace {

using atl::test::real_cpus;
using atl::test::with_workers;

long fib(int n) {
  if (n < 2) return n;
  auto left = atl::fork([n] { return fib(n - 1); });
  const long right = fib(n - 2);
  return left.join() + right;
}

// The exit status of what `child` returns in a child of fork().
template <class Child>
int in_a_child(Child&& child) {
  const pid_t pid = fork();
  if (pid == 0) std::_Exit(child());
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// ThreadSanitizer lets the child of a process with threads start none of its own, and to that child
// AddressSanitizer's allocator may come locked, by a thread that is not there (GCC 12).
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
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
  const std::vector<int> all = real_cpus();
  ASSERT_GE(all.size(), 2U) << "needs two CPUs to lose one";
  const std::vector<int> one = {all.front()};
  atl::RuntimeOptions options = with_workers(4);
  options.interval = std::chrono::milliseconds(1);
  atl::Runtime runtime(options);
  EXPECT_GT(cpus_sat_on(runtime).size(), 1U);
  for (const auto& cpus : {one, all, one, all}) {
    bind_all_threads(cpus);
    // The answers are right throughout; the governor looks while tasks run.
    while (cpus_sat_on(runtime) != std::set<int>(cpus.begin(), cpus.end())) {
      ASSERT_EQ(runtime.run([] { return fib(14); }), 377);
    }
  }
  bind_all_threads(all);
}

TEST(Reliability, ErrnoAndThreadLocalsAreReadOnTheThreadWhereOneIs) {
  // A yield may come back on another thread: this_task::worker() and the mask must agree.
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
