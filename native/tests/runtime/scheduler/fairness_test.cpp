// Tasks that keep a worker busy for ever starve no other: tasks from outside, older ones, sleepers.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "atoll/runtime/event.hpp"
#include "atoll/runtime/runtime.hpp"
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

}  // namespace
