// Tasks that only some workers may run never hide, in a worker's deque, those that all may run.
// Each test waits for ever if they do.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "atoll/runtime/all_do.hpp"
#include "atoll/runtime/group.hpp"
#include "atoll/runtime/latch.hpp"
#include "atoll/runtime/runtime.hpp"
#include "atoll/runtime/this_task.hpp"
#include "runtime/parts.hpp"

namespace {

using atl::test::with_workers;

constexpr int kWorkers = 4;

void await(const std::atomic<bool>& flag) {
  while (!flag) std::this_thread::yield();
}

// Forks a child and keeps this worker busy until another one has begun it.
void fork_for_others() {
  std::atomic<bool> begun{false};
  auto child = atl::fork([&begun] { begun = true; });
  await(begun);
  child.join();
}

TEST(MixedDomains, ATaskSpawnedForThisWorkerHidesNoFork) {
  atl::Runtime runtime(with_workers(kWorkers));
  runtime.run([] {
    std::vector<atl::Task<>> bound;
    for (int i = 0; i < 100; ++i) {
      bound.push_back(atl::spawn(atl::on_worker(atl::this_task::worker()), [] {}));
    }
    fork_for_others();
    for (atl::Task<>& task : bound) task.join();
  });
}

TEST(MixedDomains, WhatACallOnAllWorkersLeavesHidesNoFork) {
  atl::Runtime runtime(with_workers(kWorkers));
  runtime.run([] {
    std::vector<atl::Task<>> left(kWorkers);
    atl::all_do([&](int rank) { left[static_cast<std::size_t>(rank)] = atl::spawn([] {}); });
    fork_for_others();
    for (atl::Task<>& task : left) task.join();
  });
}

TEST(MixedDomains, OlderForksAreHiddenByNoCallOnAllWorkers) {
  atl::Runtime runtime(with_workers(kWorkers));
  runtime.run([] {
    std::atomic<bool> begun{false};
    auto child = atl::fork([&begun] { begun = true; });
    const int own = atl::this_task::worker();
    atl::all_do([&](int rank) {
      if (rank == own) await(begun);
    });
    child.join();
  });
}

// The only member of a group takes a fair turn for a task that all may run, with tasks of its group
// in its deque; the others are busy until then.
TEST(MixedDomains, TasksOfAGroupHideNoForkOfAnother) {
  atl::Runtime runtime(with_workers(kWorkers));
  atl::Group group(runtime, {.threads = 1, .approach = "static-local"});
  const int member = group.run([] { return atl::this_task::worker(); });
  std::atomic<bool> free{false};
  std::atomic<int> held{0};
  std::vector<atl::Task<>> holders;
  for (int rank = 0; rank < kWorkers; ++rank) {
    if (rank == member) continue;
    holders.push_back(runtime.spawn(atl::on_worker(rank), [&] {
      ++held;
      await(free);
    }));
  }
  while (held < kWorkers - 1) std::this_thread::yield();
  std::atomic<bool> spawned{false};
  std::atomic<bool> open{false};
  std::atomic<int> ran{0};
  auto of_group = group.spawn([&] {
    std::vector<atl::Task<>> tasks;
    for (int i = 0; i < 300; ++i) tasks.push_back(atl::spawn([&] { ++ran; }));
    for (atl::Task<>& task : tasks) task.detach();
    spawned = true;
    await(open);
  });
  await(spawned);
  auto for_all = runtime.spawn([&] {
    EXPECT_EQ(atl::this_task::worker(), member);
    EXPECT_LT(ran, 300);  // so that some lie in the deque
    free = true;
    fork_for_others();
  });
  open = true;
  for_all.join();
  of_group.join();
  for (atl::Task<>& task : holders) task.join();
  while (ran < 300) std::this_thread::yield();
}

}  // namespace
