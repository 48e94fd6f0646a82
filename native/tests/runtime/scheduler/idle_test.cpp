// What idle workers cost, as counts: they do not grow with the number of workers.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "atoll/runtime/runtime.hpp"
#include "runtime/parts.hpp"
#include "scheduler/asymmetric_fence.hpp"
#include "scheduler/team.hpp"

namespace {

atl::RuntimeOptions on_16_chiplets(int workers) {
  atl::RuntimeOptions options = atl::test::with_workers(workers);
  options.places = atl::synthetic_places("node:2 chiplet:8 core:8", atl::test::real_cpus());
  options.interval = std::chrono::hours(1);  // no governor in between
  return options;
}

void await_sleep(atl::Runtime& runtime) {
  while (runtime.team().parking.sleepers() < runtime.workers()) std::this_thread::yield();
}

class Idle : public testing::TestWithParam<int> {};

// A spawn wakes one worker, which wakes another when it has found the task.
TEST_P(Idle, ASpawnFromOutsideWakesFewWhateverTheNumberOfWorkers) {
  constexpr std::uint64_t kSpawns = 20;
  atl::Runtime runtime(on_16_chiplets(GetParam()));
  const atl::runtime::Parking& parking = runtime.team().parking;
  await_sleep(runtime);
  const std::uint64_t wakes = parking.futex_wakes();
  const std::uint32_t barriers = atl::runtime::membarriers();
  for (std::uint64_t spawn = 0; spawn < kSpawns; ++spawn) {
    runtime.spawn([] {}).join();  // `run` wakes nobody
    await_sleep(runtime);
  }
  // A worker that is counted as asleep, but has its second look still before it, may find the task
  // by itself: not every spawn needs a wake.
  EXPECT_GT(parking.futex_wakes() - wakes, 0U);
  EXPECT_LE(parking.futex_wakes() - wakes, 3 * kSpawns);
  // One for each worker that goes to sleep, and for each look that finds something after all.
  EXPECT_LE(atl::runtime::membarriers() - barriers, 8 * kSpawns);
}

INSTANTIATE_TEST_SUITE_P(Workers, Idle, ::testing::Values(2, 8, 64));

}  // namespace
