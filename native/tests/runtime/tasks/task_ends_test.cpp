// How forks, scopes, tasks and groups end without a join: which are dropped, which are awaited,
// whose exception is lost, and which a stop request reaches.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <ctime>
#include <memory>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <vector>

#include "atoll/runtime/event.hpp"
#include "atoll/runtime/fork.hpp"
#include "atoll/runtime/group.hpp"
#include "atoll/runtime/parallel.hpp"
#include "atoll/runtime/runtime.hpp"
#include "atoll/runtime/scope.hpp"
#include "atoll/runtime/sleep.hpp"
#include "atoll/runtime/this_task.hpp"
#include "runtime/parts.hpp"

namespace {

using atl::test::fib;
using atl::test::with_workers;

class TaskEnds : public testing::TestWithParam<int> {
 protected:
  atl::Runtime runtime{with_workers(GetParam())};
};

TEST_P(TaskEnds, AForkThatIsNeverJoinedRuns) {
  std::atomic<int> ran{0};
  runtime.run([&] {
    for (int i = 0; i < 1000; ++i) [[maybe_unused]]
      const auto forgotten = atl::fork([&] { ++ran; });
    EXPECT_EQ(ran, 1000);
  });
}

TEST(TaskEndsAlone, AForkThatNobodyHasBegunIsDroppedWhileAnExceptionUnwinds) {
  atl::Runtime runtime(with_workers(1));
  bool began = false;
  EXPECT_THROW(runtime.run([&] {
    auto child = atl::fork([&] { began = true; });
    throw std::runtime_error("before the join");
  }),
               std::runtime_error);
  EXPECT_FALSE(began);
}

TEST_P(TaskEnds, TheExceptionOfAForkThatIsLeftIsLost) {
  runtime.run([] {
    std::atomic<bool> began{false};
    {
      auto child = atl::fork([&began]() -> int {
        began = true;
        throw std::out_of_range("child");
      });
      while (!began) atl::yield();
    }
  });
}

TEST_P(TaskEnds, AScopeWaitsForItsChildrenAndLosesTheirExceptionsWhenItGoes) {
  std::atomic<int> done{0};
  runtime.run([&] {
    {
      atl::Scope scope;
      for (int i = 0; i < 50; ++i) {
        scope.fork([&done] {
          atl::yield();
          ++done;
          throw std::out_of_range("child");
        });
      }
    }
    EXPECT_EQ(done, 50);
  });
}

TEST_P(TaskEnds, TheExceptionOfADetachedTaskIsLost) {
  std::atomic<bool> ran{false};
  {
    atl::Runtime own(with_workers(GetParam()));
    own.spawn([&ran] {
         ran = true;
         throw std::out_of_range("detached");
       })
        .detach();
  }
  EXPECT_TRUE(ran);
}

TEST_P(TaskEnds, TheDestructorWaitsForWhatADetachedTaskTakesWithIt) {
  struct Wait {
    void operator()(std::atomic<int>* gone) const {
      atl::sleep_for(std::chrono::milliseconds(2));
      ++*gone;
    }
  };
  std::atomic<int> gone{0};
  {
    atl::Runtime own(with_workers(GetParam()));
    for (int i = 0; i < 20; ++i) {
      own.spawn([kept = std::unique_ptr<std::atomic<int>, Wait>(&gone)] { atl::yield(); }).detach();
    }
  }
  EXPECT_EQ(gone, 20);
}

TEST_P(TaskEnds, AGroupWaitsForItsTasks) {
  std::atomic<int> done{0};
  {
    atl::Group group(runtime, {.threads = 1, .approach = "static-local"});
    for (int i = 0; i < 20; ++i) {
      group
          .spawn([&done] {
            for (int turn = 0; turn < 5; ++turn) atl::yield();
            ++done;
          })
          .detach();
    }
  }
  EXPECT_EQ(done, 20);
}

TEST_P(TaskEnds, AStopReachesForksLoopsAndScopesOfTheTaskButNotWhatItSpawned) {
  std::atomic<int> waiting{0};
  const auto until_stopped = [&waiting] {
    ++waiting;
    while (!atl::this_task::stop_token().stop_requested()) atl::yield();
  };
  auto task = runtime.spawn([&] {
    auto spawned = atl::spawn([] { return atl::this_task::stop_token(); });
    auto child = atl::fork(until_stopped);
    atl::Scope scope;
    scope.fork(until_stopped);
    scope.join();
    child.join();
    EXPECT_THROW(atl::parallel_for(0, 10, [&](int) { until_stopped(); }, 1), atl::Stopped);
    return spawned.join().stop_requested();
  });
  while (waiting == 0) std::this_thread::yield();
  task.request_stop();
  EXPECT_FALSE(task.join());
}

TEST_P(TaskEnds, ATaskCannotJoinItselfNorCanWhatItForks) {
  runtime.run([] {
    atl::Task<> task;
    atl::Event known;
    std::atomic<int> faults{0};
    const auto join_own = [&] {
      try {
        task.join();
      } catch (const atl::RuntimeFault& fault) {
        if (std::string_view(fault.what()).starts_with("join: a task, or a fork")) ++faults;
      }
    };
    task = atl::spawn([&] {
      known.wait();
      join_own();
      atl::fork(join_own).join();
      atl::parallel_for(0, 4, [&](int) { join_own(); });
      atl::Scope scope;
      scope.fork(join_own);
      scope.join();
    });
    known.set();
    while (faults < 7) atl::yield();
    task.join();
  });
}

TEST(TaskEndsAlone, AJoinRunsTheTaskItselfIfItLiesOnTop) {
  atl::Runtime runtime(with_workers(1));
  const auto counts = [&] { return runtime.counts().front(); };
  runtime.run([&] {
    const atl::Counts before = counts();
    EXPECT_EQ(atl::spawn([] { return fib(5); }).join(), 5);
    EXPECT_EQ(counts().switches, before.switches);
    // Below another one it does not.
    auto below = atl::spawn([] {});
    auto above = atl::spawn([] {});
    below.join();
    above.join();
    EXPECT_GT(counts().switches, before.switches);
  });
}

TEST(TaskEndsAlone, WhatAGroupSpawnsStaysInItUnlessItNamesAPlace) {
  atl::Runtime runtime(with_workers(4));
  atl::Group group(runtime, {.threads = 2, .approach = "static-local"});
  const std::vector<int> members = group.workers();
  const auto here = [] { return atl::this_task::worker(); };
  const auto is_member = [&](int rank) {
    return std::find(members.begin(), members.end(), rank) != members.end();
  };
  group.run([&] {
    for (int i = 0; i < 200; ++i) {
      auto inside = atl::spawn([&] {
        atl::yield();
        return here();
      });
      EXPECT_TRUE(is_member(inside.join()));
      EXPECT_TRUE(is_member(here()));
    }
    for (int rank = 0; rank < 4; ++rank) EXPECT_EQ(atl::call(atl::on_worker(rank), here), rank);
  });
}

// CPU time, so that other processes do not count.
TEST(TaskEndsAlone, IdleWorkersSleep) {
  atl::Runtime runtime(with_workers(8));
  EXPECT_EQ(runtime.run([] { return fib(12); }), 144);
  const auto cpu_s = [] {
    timespec spent{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &spent);
    return static_cast<double>(spent.tv_sec) + 1e-9 * static_cast<double>(spent.tv_nsec);
  };
  // They look for a while first, however long that takes here.
  double share = 1;
  for (int times = 0; times < 100 && share > 0.1; ++times) {
    const double before = cpu_s();
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    share = (cpu_s() - before) / 0.1;
  }
  EXPECT_LE(share, 0.1) << "of a core";
}

INSTANTIATE_TEST_SUITE_P(Workers, TaskEnds, testing::Values(1, 2, 8),
                         [](const auto& info) { return std::to_string(info.param); });

}  // namespace
