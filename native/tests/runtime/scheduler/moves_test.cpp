// Workers that move while others sleep.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "atoll/runtime/runtime.hpp"
#include "atoll/runtime/task.hpp"
#include "runtime/parts.hpp"
#include "scheduler/team.hpp"

namespace {

std::vector<int> chiplets_of_workers(const atl::Runtime& runtime) {
  std::vector<int> chiplets;
  for (const int core : runtime.cores()) {
    chiplets.push_back(runtime.places().cores[static_cast<std::size_t>(core)].chiplet);
  }
  return chiplets;
}

// The task lies in the deque of a worker that has left its chiplet and is busy; those that have
// come there were asleep when it was published.
TEST(Moves, WhoSleepsIsWokenForTheTasksOfItsNewChiplet) {
  constexpr int kWorkers = 4;
  atl::Runtime runtime(atl::test::with_workers(kWorkers));
  runtime.set_spread(2);
  const std::vector<int> close = chiplets_of_workers(runtime);
  runtime.set_spread(kWorkers);
  const std::vector<int> wide = chiplets_of_workers(runtime);
  int leaver = 0;
  while (leaver < kWorkers &&
         (close[static_cast<std::size_t>(leaver)] == wide[static_cast<std::size_t>(leaver)] ||
          !std::ranges::count(close, wide[static_cast<std::size_t>(leaver)]))) {
    ++leaver;
  }
  ASSERT_LT(leaver, kWorkers) << "nobody's chiplet goes to others";
  const int chiplet = wide[static_cast<std::size_t>(leaver)];

  std::atomic<bool> spawned{false};
  std::atomic<bool> ran{false};
  std::atomic<bool> seen{false};
  atl::Task<> busy = runtime.spawn(atl::on_worker(leaver), [&] {
    atl::Task<> task = atl::spawn(atl::on_chiplet(chiplet), [&] { ran = true; });
    spawned = true;
    seen = atl::test::soon([&] { return ran.load(); });  // it does not suspend
    task.join();
  });
  EXPECT_TRUE(atl::test::soon(
      [&] { return spawned && runtime.team().parking.sleepers() == kWorkers - 1; }));
  runtime.set_spread(2);
  busy.join();
  EXPECT_TRUE(seen) << "it waited for the worker that was busy";
}

}  // namespace
