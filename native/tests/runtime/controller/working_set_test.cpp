// The working set, measured: by occupancy, by fills, and what `cache-size-centric` makes of it on
// the simulated machine.
#include "controller/working_set.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "simulation.hpp"

namespace atl::runtime {
namespace {

constexpr std::uint64_t kL3 = 32 << 20;

std::optional<std::uint64_t> occupied(const std::vector<std::optional<std::uint64_t>>& bytes,
                                      const std::vector<int>& in_use) {
  std::vector<L3Profile> l3s;
  for (const auto& one : bytes) {
    l3s.push_back({2 * static_cast<int>(l3s.size()), one, std::nullopt, std::nullopt});
  }
  return working_set_by_occupancy(l3s, in_use);
}

TEST(WorkingSet, IsWhatTheL3sInUseHoldAndALittleMore) {
  EXPECT_EQ(occupied({15000, 30000, 45000}, {0, 4}), 64000U);
  EXPECT_EQ(occupied({15000, 30000, 45000}, {2}), 32000U) << "what is left elsewhere is not in use";
  EXPECT_EQ(occupied({0}, {0}), 0U);
}

TEST(WorkingSet, WithoutAMonitorUnderAWorkerIsUnknown) {
  EXPECT_EQ(occupied({15000, std::nullopt}, {0, 2}), std::nullopt);
  EXPECT_EQ(occupied({15000, std::nullopt}, {0}), 16000U);
  EXPECT_EQ(occupied({15000}, {0, 2}), std::nullopt);
  EXPECT_EQ(occupied({15000}, {}), std::nullopt);
}

// `cache-size-centric` asked again and again, by a machine that holds what fits: it ends on the
// fewest chiplets that hold the set, and stays.
TEST(WorkingSet, ByOccupancyItSettlesOnTheFewestThatHoldTheSet) {
  const auto approach = approach_by_name("cache-size-centric");
  std::mt19937_64 random(1);
  for (int run = 0; run < 500; ++run) {
    const std::uint64_t set = random() % (7 * kL3);
    int spread = 1 + static_cast<int>(random() % 8);
    std::vector<int> seen;
    for (int interval = 0; interval < 20; ++interval) {
      std::vector<L3Profile> l3s;
      std::vector<int> in_use;
      for (int l3 = 0; l3 < spread; ++l3) {
        const std::uint64_t part = set / static_cast<std::uint64_t>(spread);
        l3s.push_back({l3, std::min(part, kL3), std::nullopt, std::nullopt});
        in_use.push_back(l3);
      }
      Sample sample{.elapsed_s = 0.1, .spread = spread, .max_spread = 8};
      sample.chiplet_l3_bytes = kL3;
      sample.working_set_bytes = working_set_by_occupancy(l3s, in_use);
      spread = approach->step(sample).spread;
      seen.push_back(spread);
    }
    const double needed = static_cast<double>(set) * 16 / 15 / static_cast<double>(kL3);
    EXPECT_EQ(spread, std::max(1, static_cast<int>(std::ceil(needed)))) << set;
    EXPECT_EQ(std::ranges::count(seen, spread),
              std::ssize(seen) - (std::ranges::find(seen, spread) - seen.begin()))
        << "it stays: " << set;
  }
}

std::optional<std::uint64_t> by_fills(std::optional<std::uint64_t> local,
                                      std::optional<std::uint64_t> memory, int spread = 1) {
  return working_set_by_fills({.local_chiplet = local, .memory = memory}, spread, kL3);
}

TEST(WorkingSet, ByFillsIsTheL3sOverTheShareThatIsFoundInThem) {
  EXPECT_EQ(by_fills(5'000'000, 5'000'000), 2 * kL3);
  EXPECT_EQ(by_fills(5'000'000, 15'000'000), 4 * kL3);
  EXPECT_EQ(by_fills(5'000'000, 5'000'000, 3), 6 * kL3);
  // What another chiplet's cache held was found, too.
  EXPECT_EQ(working_set_by_fills({.local_chiplet = 3'000'000,
                                  .remote_chiplet = 1'000'000,
                                  .remote_node = 1'000'000,
                                  .memory = 5'000'000},
                                 2, kL3),
            4 * kL3);
}

TEST(WorkingSet, ByFillsASetThatFitsIsNoLargerThanTheL3sInUse) {
  EXPECT_EQ(by_fills(100'000'000, 0, 2), 2 * kL3);
  EXPECT_EQ(by_fills(100'000'000, 5'000'000, 2), 2 * kL3) << "some lines are always new";
}

TEST(WorkingSet, ByFillsIsNoLargerThanWhatWasLoaded) {
  EXPECT_EQ(by_fills(1000, 0), 64'000U);
  EXPECT_EQ(by_fills(1, 999), 64'000U);
  EXPECT_EQ(by_fills(0, 1'000'000), 64'000'000U) << "a scan finds nothing";
  EXPECT_EQ(by_fills(0, 0), 0U);
}

TEST(WorkingSet, ByFillsIsUnknownWithoutOneOfTheTwo) {
  EXPECT_EQ(by_fills(std::nullopt, 5), std::nullopt);
  EXPECT_EQ(by_fills(5, std::nullopt), std::nullopt);
  EXPECT_EQ(working_set_by_fills({.local_chiplet = 5, .memory = 5}, 1, 0), std::nullopt);
}

// The set of an interval never falls if more of the lines come from memory.
TEST(WorkingSet, ByFillsRisesWithWhatIsMissed) {
  std::mt19937_64 random(1);
  for (int run = 0; run < 10'000; ++run) {
    const std::uint64_t all = random() % 100'000'000;
    const std::uint64_t missed = random() % (all + 1);
    const std::uint64_t more = missed + random() % (all - missed + 1);
    const int spread = 1 + static_cast<int>(random() % 16);
    EXPECT_LE(by_fills(all - missed, missed, spread), by_fills(all - more, more, spread));
  }
}

TEST(RecentFills, KeepsTheLargestOfAFewAndLeavesOutTheFirstAfterAMove) {
  RecentFills recent;
  EXPECT_EQ(recent.bytes(), std::nullopt);
  const auto add = [&](int spread, std::uint64_t local, std::uint64_t memory) {
    Sample sample{.spread = spread};
    sample.fills = {.local_chiplet = local, .memory = memory};
    sample.chiplet_l3_bytes = kL3;
    recent.add(sample);
    return recent.bytes();
  };
  EXPECT_EQ(add(1, 5'000'000, 5'000'000), 2 * kL3);
  EXPECT_EQ(add(1, 1000, 0), 2 * kL3) << "it did little";
  EXPECT_EQ(add(4, 1'000'000, 9'000'000), 2 * kL3) << "caches are filled again";
  for (int interval = 0; interval < 6; ++interval) add(4, 1000, 0);
  EXPECT_EQ(recent.bytes(), 2 * kL3);
  EXPECT_EQ(add(4, 1000, 0), 64'000U);
}

// On the simulated machine, with noise, from the fewest chiplets on.
TEST(WorkingSet, ByFillsCacheSizeCentricFindsTheSpreadOfTheSimulatedJob) {
  const simulation::Machine machine;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    for (const auto& [job, best] :
         {std::pair(simulation::capacity_job(), 5), std::pair(simulation::indifferent_job(), 1)}) {
      simulation::Simulation simulation(machine, job, true, seed);
      const auto approach = approach_by_name("cache-size-centric");
      RecentFills recent;
      int spread = 1;
      for (int interval = 0; interval < 200; ++interval) {
        Sample sample = simulation.next(spread);
        recent.add(sample);
        sample.working_set_bytes = recent.bytes();
        sample.working_set_source = WorkingSetSource::fills;
        spread = approach->step(sample).spread;
        if (interval <= 20) continue;
        EXPECT_EQ(spread, best) << job.name << " " << interval;
      }
    }
  }
}

}  // namespace
}  // namespace atl::runtime
