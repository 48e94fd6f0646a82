// Tasks that keep a worker busy for ever starve no other: tasks from outside, older ones, sleepers.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <string_view>
#include <thread>
#include <vector>

#include "atoll/runtime/event.hpp"
#include "atoll/runtime/fork.hpp"
#include "atoll/runtime/profile.hpp"
#include "atoll/runtime/runtime.hpp"
#include "atoll/runtime/scope.hpp"
#include "atoll/runtime/sleep.hpp"
#include "atoll/runtime/this_task.hpp"
#include "runtime/parts.hpp"

namespace {

using atl::test::with_workers;

// Two tasks that wake each other keep their worker busy for ever.
template <class Meanwhile>
void while_two_tasks_wake_each_other(Meanwhile&& meanwhile) {
  std::atomic<bool> stop{false};
  atl::Event ping;
  atl::Event pong;
  auto other = atl::spawn([&] {
    while (!stop) {
      ping.wait();
      ping.reset();
      pong.set();
    }
    pong.set();  // the other may see `stop` later
  });
  const auto exchange = [&] {
    ping.set();
    pong.wait();
    pong.reset();
  };
  exchange();  // so that both have begun
  meanwhile(stop);
  while (!stop) exchange();
  ping.set();
  other.join();
}

TEST(SchedulerFairness, ATaskFromOutsideRunsWhileTwoTasksWakeEachOther) {
  atl::Runtime runtime(with_workers(1));
  std::atomic<std::atomic<bool>*> stop{nullptr};
  auto pair = runtime.spawn(
      [&] { while_two_tasks_wake_each_other([&](std::atomic<bool>& flag) { stop = &flag; }); });
  while (stop == nullptr) std::this_thread::yield();
  runtime.run([&] { *stop = true; });
  pair.join();
}

TEST(SchedulerFairness, ATaskFromOutsideRunsWhileATaskYields) {
  atl::Runtime runtime(with_workers(1));
  // Whatever the worker has counted before.
  for (int round = 0; round < 300; ++round) {
    std::atomic<bool> stop{false};
    auto yields = runtime.spawn([&] {
      while (!stop) atl::yield();
    });
    runtime.run([&] { stop = true; });
    yields.join();
  }
}

TEST(SchedulerFairness, AnOlderTaskRunsWhileTwoTasksWakeEachOther) {
  atl::Runtime runtime(with_workers(1));
  runtime.run([] {
    atl::Task<> last;
    while_two_tasks_wake_each_other(
        [&](std::atomic<bool>& stop) { last = atl::spawn([&] { stop = true; }); });
  });
}

// The task that a worker has resumed is its next one, unless it stays in another.
TEST(SchedulerFairness, AResumedTaskRunsElsewhereWhileItsWorkerIsInALongTask) {
  atl::Runtime runtime(with_workers(2));
  for (int round = 0; round < 50; ++round) {
    runtime.run([] {
      std::atomic<bool> waits{false};
      std::atomic<bool> ran{false};
      atl::Event event;
      auto resumed = atl::spawn([&] {
        waits = true;
        event.wait();
        ran = true;
      });
      while (!waits) atl::yield();
      event.set();
      while (!ran) std::this_thread::yield();
    });
  }
}

TEST(SchedulerFairness, ASleeperWakesWhileTwoTasksWakeEachOther) {
  atl::Runtime runtime(with_workers(1));
  runtime.run([] {
    atl::Task<> sleeper;
    while_two_tasks_wake_each_other([&](std::atomic<bool>& stop) {
      sleeper = atl::spawn([&] {
        atl::sleep_for(std::chrono::milliseconds(1));
        stop = true;
      });
      atl::yield();
    });
  });
}

std::uint64_t parks_of(const atl::Runtime& runtime, int worker) {
  return runtime.profile().workers.at(static_cast<std::size_t>(worker)).counts.parks;
}

TEST(SchedulerFairness, AnIdleWorkerGetsItsShareOfTasksThatYieldWithoutPause) {
  atl::Runtime runtime(with_workers(2));
  std::atomic<bool> together{false};
  std::array<std::atomic<int>, 4> where{8, 8, 8, 8};  // not begun
  const auto yield_on = [&](int id) {
    while (!together) {
      where[static_cast<std::size_t>(id)] = atl::this_task::worker();
      const int sum = where[0] + where[1] + where[2] + where[3];
      if (sum > 0 && sum < 4) together = true;
      atl::yield();
    }
  };
  runtime.run([&] {
    atl::Scope scope;
    for (int id = 0; id < 4; ++id) scope.fork([&yield_on, id] { yield_on(id); });
  });
}

TEST(SchedulerFairness, AWorkerSleepsNextToTasksThatYieldAndThatItMayNotRun) {
  atl::Runtime runtime(with_workers(2));
  std::atomic<bool> stop{false};
  std::atomic<int> begun{0};
  std::vector<atl::Task<>> tasks;
  for (int id = 0; id < 2; ++id) {
    tasks.push_back(runtime.spawn(atl::on_worker(0), [&] {
      ++begun;
      while (!stop) atl::yield();
    }));
  }
  while (begun < 2) std::this_thread::yield();
  // It was awake when this began, or is woken now.
  runtime.spawn(atl::on_worker(1), [] {}).join();
  const std::uint64_t before = parks_of(runtime, 1);
  runtime.spawn(atl::on_worker(1), [] {}).join();
  while (parks_of(runtime, 1) == before) std::this_thread::yield();
  stop = true;
  for (atl::Task<>& task : tasks) task.join();
}

TEST(SchedulerFairness, SectionsCountTheYieldsOfTheirTasks) {
  constexpr std::uint64_t kYields = 1000;
  atl::Runtime runtime(with_workers(1));
  runtime.run([] {
    atl::Scope scope;
    for (const char* const name : {"one", "one", "other"}) {
      scope.fork([name] {
        const bool one = name == std::string_view("one");
        const auto yields = [] {
          for (std::uint64_t i = 0; i < kYields; ++i) atl::yield();
        };
        if (one) {
          const atl::Section section("one");
          yields();
        } else {
          const atl::Section section("other");
          yields();
        }
      });
    }
  });
  for (const atl::SectionProfile& section : atl::section_totals(runtime.profile())) {
    const std::uint64_t tasks = section.name == "one" ? 2 : 1;
    EXPECT_EQ(section.entered, tasks);
    EXPECT_EQ(section.counts.yields, tasks * kYields);
  }
}

// Nobody was idle at the fork, so the child is private to its worker, which then calls nothing of
// the runtime. Without a thief that takes it all the same, this waits for ever.
TEST(SchedulerFairness, AWorkerInALongTaskGivesUpWhatItForkedWhenAllWereBusy) {
  atl::Runtime runtime(with_workers(2));
  std::atomic<bool> busy{false};
  std::atomic<bool> free{false};
  std::atomic<bool> begun{false};
  const auto await = [](const std::atomic<bool>& flag) {
    while (!flag) std::this_thread::yield();
  };
  auto other = runtime.spawn(atl::on_worker(1), [&] {
    busy = true;
    await(free);
  });
  await(busy);
  auto task = runtime.spawn([&] {
    auto child = atl::fork([&] { begun = true; });
    free = true;
    await(begun);
    child.join();
  });
  task.join();
  other.join();
}

}  // namespace
