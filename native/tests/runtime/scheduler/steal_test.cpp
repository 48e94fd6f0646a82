// How much a thief takes at once.
#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <numeric>
#include <thread>
#include <vector>

#include "atoll/runtime/profile.hpp"
#include "atoll/runtime/runtime.hpp"
#include "runtime/parts.hpp"

namespace {

using atl::test::with_workers;

// Each steal costs the victim some transfers of cache lines, however many tasks it takes.
TEST(Steal, ADeepDequeIsTakenInFewSteals) {
  constexpr std::size_t kTasks = 8192;
  atl::Runtime runtime(with_workers(2));
  std::atomic<bool> thief_held{false};
  std::atomic<bool> all_there{false};
  std::atomic<std::size_t> done{0};
  const auto await = [](auto&& condition) {
    while (!condition()) std::this_thread::yield();
  };
  auto holder = runtime.spawn(atl::on_worker(1), [&] {
    thief_held = true;
    await([&] { return all_there.load(); });
  });
  await([&] { return thief_held.load(); });
  runtime.run([&] {  // on worker 0, the only other one
    std::vector<atl::Task<>> tasks;
    for (std::size_t i = 0; i < kTasks; ++i) tasks.push_back(atl::spawn([&] { ++done; }));
    all_there = true;
    await([&] { return done == kTasks; });
    for (atl::Task<>& task : tasks) task.join();
  });
  holder.join();
  const atl::Counts counts = runtime.profile().workers[1].counts;
  const std::uint64_t steals =
      std::accumulate(counts.steals.begin(), counts.steals.end(), std::uint64_t{0});
  EXPECT_GT(steals, 0U);
  EXPECT_LE(steals, 160U) << "each makes half of what is left public, and takes half of that";
}

}  // namespace
