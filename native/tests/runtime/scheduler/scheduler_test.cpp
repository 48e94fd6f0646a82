// The scheduler from outside: forks, scopes, tasks, places and groups as a program sees them. Many
// virtual cores run on the few real ones; bound workers are on the real CPU of their core.
#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <numeric>
#include <set>
#include <stdexcept>
#include <thread>

#include "atoll/runtime/fork.hpp"
#include "atoll/runtime/group.hpp"
#include "atoll/runtime/runtime.hpp"
#include "atoll/runtime/scope.hpp"
#include "atoll/runtime/sleep.hpp"
#include "atoll/runtime/this_task.hpp"
#include "runtime/parts.hpp"

namespace {

using atl::test::fib;
using atl::test::with_workers;

class Scheduler : public testing::TestWithParam<int> {
 protected:
  atl::Runtime runtime{with_workers(GetParam())};
};

TEST_P(Scheduler, ForksGiveTheirValues) {
  EXPECT_EQ(runtime.run([] { return fib(18); }), 2584);
}

TEST_P(Scheduler, ForksMayBeJoinedInAnyOrder) {
  const long sum = runtime.run([] {
    auto a = atl::fork([] { return fib(10); });
    auto b = atl::fork([] { return fib(11); });
    auto c = atl::fork([] { return fib(12); });
    const long first = a.join();
    return first * 1'000'000 + c.join() * 1'000 + b.join();
  });
  EXPECT_EQ(sum, 55 * 1'000'000 + 144 * 1'000 + 89);
}

TEST_P(Scheduler, ASecondJoinOfAForkIsAFault) {
  runtime.run([] {
    auto inline_child = atl::fork([] { return 1; });
    EXPECT_EQ(inline_child.join(), 1);
    EXPECT_THROW(inline_child.join(), atl::RuntimeFault);
    std::atomic<bool> ran{false};
    auto other = atl::fork([&] { ran = true; });
    auto newer = atl::fork([] { return 2; });
    atl::yield();  // somebody may steal them
    other.join();
    EXPECT_THROW(other.join(), atl::RuntimeFault);
    EXPECT_EQ(newer.join(), 2);  // the faults put back what they popped
    EXPECT_TRUE(ran);
  });
}

TEST_P(Scheduler, AnExceptionOfAForkComesOutOfItsJoin) {
  EXPECT_THROW(runtime.run([] {
    auto child = atl::fork([]() -> int { throw std::out_of_range("child"); });
    atl::yield();  // somebody may steal it
    return child.join();
  }),
               std::out_of_range);
}

TEST_P(Scheduler, AForkThatIsLeftByAnExceptionIsOverWhenItsFrameIsGone) {
  std::atomic<int> running{0};
  for (int round = 0; round < 200; ++round) {
    EXPECT_THROW(runtime.run([&] {
      std::vector<int> frame(16, 1);
      auto child = atl::fork([&] {
        ++running;
        const int sum = std::accumulate(frame.begin(), frame.end(), 0);
        --running;
        return sum;
      });
      if (round % 2 == 0) atl::yield();
      throw std::runtime_error("before the join");
    }),
                 std::runtime_error);
    EXPECT_EQ(running, 0);
  }
}

TEST_P(Scheduler, AForkMayGiveAReference) {
  int value = 1;
  runtime.run([&] {
    auto child = atl::fork([&]() -> int& { return value; });
    child.join() = 7;
  });
  EXPECT_EQ(value, 7);
}

TEST_P(Scheduler, AScopeWaitsForAllItsChildren) {
  std::atomic<int> sum{0};
  runtime.run([&] {
    atl::Scope scope;
    for (int i = 1; i <= 1000; ++i) {
      scope.fork([&sum, i] {
        if (i % 7 == 0) atl::yield();
        sum += i;
      });
    }
    scope.join();
    EXPECT_EQ(sum, 500'500);
    scope.fork([&sum] { sum = 1; });
    scope.join();
    EXPECT_EQ(sum, 1);
  });
}

TEST_P(Scheduler, AScopeThrowsOneExceptionWhenAllAreDone) {
  std::atomic<int> done{0};
  runtime.run([&] {
    atl::Scope scope;
    for (int i = 0; i < 100; ++i) {
      scope.fork([&done, i] {
        ++done;
        if (i % 10 == 3) throw std::invalid_argument("a child");
      });
    }
    EXPECT_THROW(scope.join(), std::invalid_argument);
    EXPECT_EQ(done, 100);
    EXPECT_NO_THROW(scope.join());
  });
}

TEST_P(Scheduler, AScopeCanStopItsChildren) {
  runtime.run([&] {
    atl::Scope scope;
    for (int i = 0; i < 5; ++i) {
      scope.fork([] {
        while (!atl::this_task::stop_token().stop_requested()) atl::yield();
      });
    }
    scope.request_stop();
    scope.join();
    EXPECT_FALSE(atl::this_task::stop_token().stop_requested());
  });
}

TEST_P(Scheduler, ATaskIsStoppedByItsHandleAndByTheDestructor) {
  std::atomic<int> stopped{0};
  runtime.run([&] {
    const auto until_stopped = [&] {
      while (!atl::this_task::stop_token().stop_requested()) atl::yield();
      ++stopped;
    };
    auto asked = atl::spawn(until_stopped);
    asked.request_stop();
    asked.join();
    {
      auto dropped = atl::spawn(until_stopped);
    }
    EXPECT_EQ(stopped, 2);
  });
}

TEST_P(Scheduler, TheDestructorWaitsForDetachedTasks) {
  std::atomic<int> done{0};
  {
    atl::Runtime own(with_workers(GetParam()));
    own.run([&] {
      for (int i = 0; i < 50; ++i) {
        atl::spawn([&] {
          for (int j = 0; j < 5; ++j) atl::yield();
          ++done;
        }).detach();
      }
    });
  }
  EXPECT_EQ(done, 50);
}

TEST_P(Scheduler, ThreadsOutsideRunTasksAtTheSameTime) {
  std::atomic<long> sum{0};
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        for (int round = 0; round < 20; ++round) sum += runtime.run([] { return fib(8); });
      });
    }
  }
  EXPECT_EQ(sum, 4 * 20 * 21);
}

TEST_P(Scheduler, ARunInsideATaskIsACall) {
  EXPECT_EQ(runtime.run([&] { return runtime.run([] { return 5; }) + 1; }), 6);
}

TEST_P(Scheduler, ATaskMayWaitForAnotherRuntime) {
  atl::Runtime other(with_workers(1));
  EXPECT_EQ(runtime.run([&] { return other.run([] { return fib(10); }); }), 55);
}

TEST_P(Scheduler, AYieldedTaskLetsFreshOnesRun) {
  // On one worker the flag is only set if a yield lets the child begin.
  runtime.run([] {
    std::atomic<bool> flag{false};
    auto child = atl::spawn([&] { flag = true; });
    while (!flag) atl::yield();
    child.join();
  });
}

TEST_P(Scheduler, CoresAreBoundToTheCpusThatStandForThem) {
  for (std::size_t rank = 0; rank < static_cast<std::size_t>(GetParam()); ++rank) {
    const int core = runtime.cores()[rank];
    runtime.run([&] {
      atl::call(atl::on_core(core), [&] {
        EXPECT_EQ(atl::this_task::core(), core);
        cpu_set_t mask;
        sched_getaffinity(0, sizeof mask, &mask);
        const auto& cpus = runtime.places().cores[static_cast<std::size_t>(core)].cpus;
        EXPECT_EQ(CPU_COUNT(&mask), static_cast<int>(cpus.size()));
        for (const int cpu : cpus) EXPECT_TRUE(CPU_ISSET(static_cast<std::size_t>(cpu), &mask));
      });
    });
  }
}

TEST_P(Scheduler, APlacedTaskIsWhereItShouldBeAlsoAfterItWasSuspended) {
  runtime.run([&] {
    for (const int core : runtime.cores()) {
      const int chiplet = runtime.places().cores[static_cast<std::size_t>(core)].chiplet;
      atl::call(atl::on_chiplet(chiplet), [&] {
        for (int i = 0; i < 50; ++i) {
          const auto at = static_cast<std::size_t>(atl::this_task::core());
          EXPECT_EQ(runtime.places().cores[at].chiplet, chiplet);
          if (i % 2 == 0) atl::yield();
          atl::spawn([] { atl::yield(); }).join();
        }
      });
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Workers, Scheduler, testing::Values(1, 2, 8));

TEST(SchedulerPlaces, UnknownPlacesAndCountsAreFaults) {
  atl::Runtime runtime(with_workers(2));
  EXPECT_THROW(runtime.run([] { atl::call(atl::on_core(7), [] {}); }), atl::RuntimeFault);
  EXPECT_THROW(runtime.run([] { atl::call(atl::on_chiplet(9), [] {}); }), atl::RuntimeFault);
  EXPECT_THROW(runtime.run([] { atl::call(atl::on_node(5), [] {}); }), atl::RuntimeFault);
  EXPECT_THROW(atl::Runtime(with_workers(-1)), atl::RuntimeFault);
  EXPECT_THROW(atl::Runtime(with_workers(100'000'000)), atl::RuntimeFault);
  EXPECT_THROW(atl::Runtime({.interval = std::chrono::milliseconds(0)}), atl::RuntimeFault);
  EXPECT_THROW(atl::Group(runtime, {.threads = 3}), atl::RuntimeFault);
  EXPECT_THROW(atl::Group(runtime, {.threads = 1, .approach = "best"}), atl::RuntimeFault);
}

// A worker that sleeps is woken for what it may run, though the task that spawned it is not of the
// same place.
TEST(SchedulerPlaces, WhatABoundTaskSpawnsForElsewhereWakesASleeper) {
  atl::Runtime runtime(with_workers(2));
  for (const atl::Place place : {atl::Place{}, atl::on_chiplet(0), atl::on_worker(1)}) {
    const bool ran =
        runtime
            .spawn(atl::on_worker(0),
                   [place] {
                     // For the other to fall asleep.
                     std::this_thread::sleep_for(std::chrono::milliseconds(50));
                     auto child = atl::spawn(place, [] {});
                     const auto deadline =
                         std::chrono::steady_clock::now() + std::chrono::seconds(60);
                     while (!child.done() && std::chrono::steady_clock::now() < deadline) {
                       std::this_thread::yield();
                     }
                     const bool done = child.done();
                     child.join();
                     return done;
                   })
            .join();
    EXPECT_TRUE(ran) << static_cast<int>(place.kind);
  }
}

TEST(SchedulerPlaces, ForkOutsideOfATaskIsAFault) {
  EXPECT_THROW(static_cast<void>(atl::fork([] {})), atl::RuntimeFault);
  EXPECT_THROW(static_cast<void>(atl::spawn([] {})), atl::RuntimeFault);
  EXPECT_THROW(atl::Scope(), atl::RuntimeFault);
  EXPECT_THROW(atl::Task<int>().join(), atl::RuntimeFault);
}

TEST(SchedulerPlaces, MoreWorkersThanCoresShareThem) {
  atl::Runtime runtime(with_workers(20));
  EXPECT_EQ(runtime.run([] { return fib(15); }), 610);
  const std::vector<int> cores = runtime.cores();
  EXPECT_EQ(std::set<int>(cores.begin(), cores.end()).size(), 8U);
}

TEST(SchedulerGroups, APlaceIsOfItsOwnRuntimeOnly) {
  atl::Runtime runtime(with_workers(2));
  atl::Runtime other(with_workers(2));
  atl::Group group(runtime, {.threads = 1});
  const atl::Group same_number(other, {.threads = 1});
  EXPECT_EQ(runtime.spawn(group.place(), [] { return 1; }).join(), 1);
  EXPECT_THROW(other.spawn(group.place(), [] { return 1; }).join(), atl::RuntimeFault);
}

// The workers of a group and the tasks that ran on others.
TEST(SchedulerGroups, TasksRunOnMembersOnlyWhileTheSpreadChanges) {
  atl::Runtime runtime(with_workers(8));
  atl::Group group(runtime, {.threads = 2, .approach = "static-local"});
  EXPECT_EQ(group.spread(), 1);
  for (const int spread : {1, 2, 1, 2}) {
    group.set_spread(spread);
    const std::vector<int> members = group.workers();
    ASSERT_EQ(members.size(), 2U);
    std::set<int> chiplets;
    for (const int rank : members) {
      const auto core = static_cast<std::size_t>(runtime.cores()[static_cast<std::size_t>(rank)]);
      chiplets.insert(runtime.places().cores[core].chiplet);
    }
    EXPECT_EQ(std::ssize(chiplets), spread);
    std::atomic<int> astray{0};
    const auto check = [&] {
      if (std::find(members.begin(), members.end(), atl::this_task::worker()) == members.end()) {
        ++astray;
      }
    };
    group.run([&] {
      atl::Scope scope;
      for (int i = 0; i < 300; ++i) {
        scope.fork([&] {
          check();
          atl::yield();
          check();
          auto child = atl::fork(check);
          child.join();
        });
      }
      scope.join();
    });
    EXPECT_EQ(astray, 0) << "spread " << spread;
  }
  EXPECT_THROW(group.set_spread(3), atl::RuntimeFault);
}

// An approach that does what the test wants.
class Scripted : public atl::Approach {
 public:
  std::atomic<int> wanted{1};
  std::string name() const override { return "scripted"; }

 protected:
  atl::Decision decide(const atl::Sample&) override { return {wanted, "told so"}; }
};

TEST(SchedulerGroups, TheWorkersMoveWhenTheApproachSaysSo) {
  auto approach = std::make_shared<Scripted>();
  atl::RuntimeOptions options = with_workers(2);
  options.own_approach = approach;
  options.interval = std::chrono::milliseconds(1);
  atl::Runtime runtime(options);
  const auto chiplets = [&] {
    std::set<int> used;
    for (const int core : runtime.cores()) {
      used.insert(runtime.places().cores[static_cast<std::size_t>(core)].chiplet);
    }
    return std::ssize(used);
  };
  EXPECT_EQ(chiplets(), 1);
  for (const int spread : {2, 1, 2}) {
    approach->wanted = spread;
    // The governor looks only while something runs.
    while (runtime.spread() != spread) runtime.run([] { return fib(12); });
    EXPECT_EQ(chiplets(), spread);
    EXPECT_EQ(runtime.reason(), "told so");
    // Threads really move: each worker's mask is that of its new core.
    for (std::size_t rank = 0; rank < 2; ++rank) {
      const int core = runtime.cores()[rank];
      runtime.run([&] {
        atl::call(atl::on_core(core), [&] {
          cpu_set_t mask;
          sched_getaffinity(0, sizeof mask, &mask);
          for (const int cpu : runtime.places().cores[static_cast<std::size_t>(core)].cpus) {
            EXPECT_TRUE(CPU_ISSET(static_cast<std::size_t>(cpu), &mask));
          }
        });
      });
    }
  }
}

}  // namespace
