// Tasks from threads that are no workers: whom they wake, and in which queue they wait.
#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <set>
#include <thread>
#include <vector>

#include "atoll/runtime.hpp"
#include "runtime/parts.hpp"
#include "scheduler/team.hpp"

namespace {

// Chiplets of one core and one of these CPUs each, a worker on each chiplet.
atl::RuntimeOptions one_worker_a_chiplet(int chiplets, const std::vector<int>& cpus) {
  atl::RuntimeOptions options;
  options.workers = chiplets;
  options.places =
      atl::synthetic_places("node:1 chiplet:" + std::to_string(chiplets) + " core:1", cpus);
  options.approach = "static-distributed";
  options.interval = std::chrono::hours(1);
  return options;
}

void until_all_sleep(atl::Runtime& runtime) {
  while (runtime.team().parking.committed() < runtime.workers()) std::this_thread::yield();
}

template <class F>
void on_cpu(int cpu, F&& function) {
  std::jthread([&] {
    cpu_set_t mask;
    CPU_ZERO(&mask);
    CPU_SET(static_cast<std::size_t>(cpu), &mask);
    ASSERT_EQ(sched_setaffinity(0, sizeof mask, &mask), 0);
    function();
  }).join();
}

TEST(Outside, ASpawnWakesAWorkerOnTheCallersChiplet) {
  const std::vector<int> cpus = atl::test::real_cpus();
  const int chiplets = static_cast<int>(std::min<std::size_t>(cpus.size(), 4));
  atl::Runtime runtime(one_worker_a_chiplet(chiplets, cpus));
  for (int chiplet = 0; chiplet < chiplets; ++chiplet) {
    on_cpu(cpus[static_cast<std::size_t>(chiplet)], [&] {
      for (int times = 0; times < 5; ++times) {
        until_all_sleep(runtime);
        EXPECT_EQ(runtime.spawn(atl::this_task::core).join(), chiplet);
      }
    });
  }
}

// The test searches in the place of a worker.
TEST(Outside, WhileAWorkerSearchesASpawnWakesNone) {
  atl::Runtime runtime(atl::test::with_workers(4));
  atl::runtime::Parking& parking = runtime.team().parking;
  until_all_sleep(runtime);
  const int place = parking.borrow(0);
  ASSERT_NE(place, atl::runtime::Parking::kNobody);
  parking.start_search(place);
  const std::uint64_t before = parking.futex_wakes();
  std::vector<atl::Task<int>> tasks;
  for (int task = 0; task < 100; ++task) tasks.push_back(runtime.spawn([task] { return task; }));
  EXPECT_EQ(parking.futex_wakes(), before);
  // The worker itself goes on with the search.
  parking.return_awake(place, atl::runtime::Parking::Kind::searcher);
  for (int task = 0; task < 100; ++task) {
    EXPECT_EQ(tasks[static_cast<std::size_t>(task)].join(), task);
  }
}

TEST(Outside, OnACpuWithoutAWorkersChipletCallersWakeThemInTurn) {
  const std::vector<int> cpus = atl::test::real_cpus();
  atl::Runtime runtime(one_worker_a_chiplet(4, {cpus.front()}));
  std::set<int> woken;
  on_cpu(cpus.back(), [&] {
    for (int times = 0; times < 4; ++times) {
      until_all_sleep(runtime);
      woken.insert(runtime.spawn(atl::this_task::core).join());
    }
  });
  EXPECT_EQ(woken.size(), cpus.size() > 1 ? 4U : 1U);
}

// Goes into its chiplet's queue again each time that it has run.
struct Again : atl::detail::Job {
  atl::runtime::Team& team;
  std::atomic<int>& left;

  Again(atl::runtime::Team& its, std::atomic<int>& all)
      : Job{run, nullptr, 0}, team(its), left(all) {}
  static void run(Job* job) {
    auto* const self = static_cast<Again*>(job);
    if (self->left < 0) return;
    self->team.inject(atl::detail::word_of(job, atl::detail::WordKind::job, 0));
  }
};

TEST(Outside, ABusyChipletLeavesNoOthersTaskWaiting) {
  const std::vector<int> cpus = atl::test::real_cpus();
  atl::RuntimeOptions options = one_worker_a_chiplet(3, cpus);
  options.workers = 1;
  atl::Runtime runtime(options);
  std::atomic<int> stop{0};
  Again one(runtime.team(), stop);
  Again two(runtime.team(), stop);
  runtime.run([&] {
    Again::run(&one);
    Again::run(&two);
  });
  on_cpu(cpus.back(), [&] { runtime.spawn([&] { stop = -1; }).join(); });
  // A turn for each of them, in which they see that it is over.
  for (int times = 0; times < 10; ++times) {
    on_cpu(cpus.front(), [&] { runtime.spawn([] {}).join(); });
  }
  until_all_sleep(runtime);
}

TEST(ChipletQueues, AreEmptiedFromAnyOfThemInTheOrderOfEach) {
  atl::runtime::ChipletQueues queues(3);
  atl::detail::Job jobs[4]{};
  const auto word = [&](int job) {
    return atl::detail::word_of(&jobs[job], atl::detail::WordKind::job, 0);
  };
  EXPECT_TRUE(queues.looks_empty());
  queues.push(word(0), 0);
  queues.push(word(1), 2);
  queues.push(word(2), 2);
  queues.push(word(3), 1);
  EXPECT_EQ(queues.pop(2), word(1));
  EXPECT_EQ(queues.pop(2), word(2));
  EXPECT_EQ(queues.pop(2), word(0));
  EXPECT_EQ(queues.pop(2), word(3));
  EXPECT_EQ(queues.pop(2), 0U);
  EXPECT_TRUE(queues.looks_empty());
}

}  // namespace
