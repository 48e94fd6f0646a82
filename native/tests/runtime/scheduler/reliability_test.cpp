// The runtime in a changing process: fork(), a mask that shrinks, runtimes that come and go.
#include <dirent.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "atoll/runtime/blocking.hpp"
#include "atoll/runtime/event.hpp"
#include "atoll/runtime/group.hpp"
#include "atoll/runtime/memory_resources.hpp"
#include "atoll/runtime/profile.hpp"
#include "atoll/runtime/runtime.hpp"
#include "atoll/runtime/scope.hpp"
#include "atoll/runtime/sleep.hpp"
#include "atoll/runtime/this_task.hpp"
#include "memory/registry.hpp"
#include "profiler/section_names.hpp"
#include "runtime/parts.hpp"
#include "stacks/stack.hpp"

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

TEST(Reliability, AChildOfForkMayDestroyAGroupWhoseTasksItDoesNotHave) {
  auto runtime = std::make_unique<atl::Runtime>(with_workers(2));
  auto group = std::make_unique<atl::Group>(*runtime);
  atl::Event event;
  auto waits = group->spawn([&] { event.wait(); });
  EXPECT_EQ(in_a_child([&] {
              group.reset();
              runtime.reset();
              return 0;
            }),
            0);
  event.set();
  waits.join();
}

// Four locks of the process, held at any time by one of two threads.
TEST(Reliability, AChildOfForkNeverFindsALockTakenByAThreadThatIsNotThere) {
  std::atomic<bool> stop{false};
  std::atomic<int> begun{0};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 2; ++thread) {
    threads.emplace_back([&stop, &begun, thread] {
      for (int round = 0; !stop; ++round) {
        static_cast<void>(atl::runtime::section_id("a section " + std::to_string(round % 4)));
        static_cast<void>(atl::local_memory(0));
        static_cast<void>(atl::runtime::registry().of(1000 + thread));
        atl::runtime::StackPool pool({});
        pool.give(pool.take(0, [](void*) {}));
        if (round == 0) ++begun;
      }
    });
  }
  // A fork() inside the very first call of these is not held back (docs/runtime-hazards.md).
  while (begun < 2) std::this_thread::yield();
  for (int round = 0; round < 20; ++round) {
    EXPECT_EQ(in_a_child([] {
                atl::Runtime own(with_workers(2));
                return own.run([] {
                  const atl::Section section("of a child");
                  static_cast<void>(atl::local_memory(0));
                  static_cast<void>(atl::runtime::registry().of(1));
                  return fib(5) == 5 ? 0 : 1;
                });
              }),
              0);
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
}

// Whatever the workers do at that moment: forks, waits, sleeps, groups, blocking calls.
TEST(Reliability, AChildOfForkMadeWhileWorkersDoEverything) {
  // The first use of what a fork holds back for (docs/runtime-hazards.md).
  atl::Runtime runtime(with_workers(4));
  const auto everything = [&runtime] {
    const atl::Section section("everything");
    static_cast<void>(atl::local_memory(0));
    atl::sleep_for(std::chrono::microseconds(50));
    atl::blocking([] {});
    atl::Event event;
    auto waits = atl::spawn([&] { return event.wait_for(std::chrono::seconds(60)); });
    const bool right = fib(8) == 21;
    event.set();
    atl::Group group(runtime, {.threads = 2});
    return waits.join() && group.run([] { return fib(5) == 5; }) && right;
  };
  ASSERT_TRUE(runtime.run(everything));
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 2; ++thread) {
    threads.emplace_back([&] {
      while (!stop) EXPECT_TRUE(runtime.run(everything));
    });
  }
  for (int round = 0; round < 30; ++round) {
    EXPECT_EQ(in_a_child([&] {
                try {
                  runtime.run([] {});
                  return 1;
                } catch (const atl::RuntimeFault&) {
                }
                atl::Runtime own(with_workers(3));
                return own.run([&] {
                  atl::sleep_for(std::chrono::microseconds(50));
                  return atl::blocking([] { return 5; }) == 5 && fib(10) == 55;
                })
                           ? 0
                           : 2;
              }),
              0)
        << round;
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
}

TEST(Reliability, AChildOfForkInATaskHasNoWorker) {
  atl::Runtime runtime(with_workers(2));
  const int status = runtime.run([] {
    return in_a_child([] {
      try {
        atl::spawn([] {}).join();
        return 1;
      } catch (const atl::RuntimeFault& fault) {
        return std::string(fault.what()).find("fork") == std::string::npos ? 2 : 0;
      }
    });
  });
  EXPECT_EQ(status, 0);
  EXPECT_EQ(runtime.run([] { return fib(10); }), 55) << "the parent goes on";
}
#endif

TEST(Reliability, ARuntimeThatItsOwnTaskDestroysSaysSo) {
  const std::string style = GTEST_FLAG_GET(death_test_style);
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        auto* const runtime = new atl::Runtime(with_workers(2));
        runtime->run([runtime] { delete runtime; });
      },
      testing::KilledBySignal(SIGABRT), "destroyed inside one of its own tasks");
  GTEST_FLAG_SET(death_test_style, style);
}

std::atomic<int> landed_on{0};

// Only one thread of the program wants the signal, but each of the runtime's was started by one
// that did.
TEST(Reliability, ASignalToTheProcessLandsOnAThreadOfTheUsers) {
  const auto previous =
      std::signal(SIGUSR1, [](int) { landed_on.store(static_cast<int>(gettid())); });
  std::atomic<int> user{0};
  std::atomic<bool> stop{false};
  std::thread wants_it([&] {
    user = static_cast<int>(gettid());
    while (!stop) std::this_thread::yield();
  });
  while (user == 0) std::this_thread::yield();
  {
    atl::Runtime runtime(with_workers(4));
    sigset_t mask;
    sigset_t before;
    sigemptyset(&mask);
    sigaddset(&mask, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &mask, &before);
    for (int times = 0; times < 20; ++times) {
      landed_on = 0;
      kill(getpid(), SIGUSR1);
      while (landed_on == 0) std::this_thread::yield();
      EXPECT_EQ(landed_on, user);
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    const auto blocks = [](int signal) {
      sigset_t now;
      pthread_sigmask(SIG_BLOCK, nullptr, &now);
      return sigismember(&now, signal) == 1;
    };
    runtime
        .spawn([&] {  // on a thread of the runtime's, which `run` need not be
          for (const int signal : {SIGTERM, SIGINT, SIGALRM, SIGCHLD}) EXPECT_TRUE(blocks(signal));
          for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) EXPECT_FALSE(blocks(signal));
          atl::blocking([&] { EXPECT_TRUE(blocks(SIGTERM)); });
        })
        .join();
    EXPECT_FALSE(blocks(SIGTERM)) << "of the thread that made the runtime";
  }
  stop = true;
  wants_it.join();
  std::signal(SIGUSR1, previous);
}

std::atomic<long> interruptions{0};

// The one asynchronous signal that workers do not block. Its handler runs on the stacks of tasks,
// in the middle of switches.
TEST(Reliability, ASamplingProfilerMayInterruptWorkersAtAnyTime) {
  struct sigaction before{};
  struct sigaction counts{};
  counts.sa_handler = [](int) { interruptions.fetch_add(1); };
  counts.sa_flags = SA_RESTART;
  sigaction(SIGPROF, &counts, &before);
  {
    atl::Runtime runtime(with_workers(4));
    std::atomic<bool> stop{false};
    std::thread interrupts([&] {
      while (!stop) {
        DIR* const tasks = opendir("/proc/self/task");
        while (const dirent* const entry = readdir(tasks)) {
          const int thread = std::atoi(entry->d_name);
          if (thread != 0 && thread != gettid()) syscall(SYS_tgkill, getpid(), thread, SIGPROF);
        }
        closedir(tasks);
      }
    });
    for (int round = 0; round < 200 || interruptions < 1000; ++round) {
      EXPECT_EQ(runtime.run([] {
        auto other = atl::spawn([] {
          for (int turn = 0; turn < 50; ++turn) atl::yield();
          return fib(10);
        });
        for (int turn = 0; turn < 50; ++turn) atl::yield();
        return fib(12) + other.join();
      }),
                144 + 55);
    }
    stop = true;
    interrupts.join();
  }
  sigaction(SIGPROF, &before, nullptr);
}

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
