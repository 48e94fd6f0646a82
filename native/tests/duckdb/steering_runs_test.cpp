// Steering of DuckDB's workers: working sets, counters within a query, and simulated queries under
// the real approach.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "atoll/runtime/controller.hpp"
#include "steering.hpp"
#include "steering_parts.hpp"

namespace {

using namespace atl::test::steering;

TEST(WorkingSet, TheLargestCounts) {
  WorkingSet set;
  EXPECT_FALSE(set.bytes());
  for (const std::uint64_t bytes : {50U, 100U, 60U, 50U, 50U, 50U}) set.add(bytes, true);
  EXPECT_EQ(set.bytes(), 100U);
  EXPECT_FALSE(set.in_doubt());
}

TEST(WorkingSet, ShrinksAfterTwoLooksThatSawLessThanHalf) {
  WorkingSet set;
  set.add(100, true);
  set.add(30, true);
  EXPECT_EQ(set.bytes(), 100U);
  EXPECT_TRUE(set.in_doubt());
  set.add(20, true);
  EXPECT_EQ(set.bytes(), 30U);
  EXPECT_FALSE(set.in_doubt());
}

TEST(WorkingSet, RunsThatCannotBeComparedMakeItGrowOnly) {
  WorkingSet set;
  set.add(100, false);
  for (int i = 0; i < 10; ++i) set.add(1, false);
  EXPECT_EQ(set.bytes(), 100U);
  EXPECT_FALSE(set.in_doubt());
}

TEST(WorkingSet, OneThatChangesFromRunToRunSettlesAtTheLargest) {
  WorkingSet set;
  std::mt19937_64 random(1);
  int shrunk = 0;
  for (int i = 0; i < 10'000; ++i) {
    const auto before = set.bytes();
    set.add(random() % 2 == 0 ? 100 : 10, true);
    if (before && set.bytes() < before) ++shrunk;
  }
  EXPECT_LE(shrunk, 4);
}

Sample interval(int spread, double memory, double others) {
  constexpr double kBusyS = 0.8;
  const atl::FillLatency latency;
  Sample sample{.elapsed_s = 0.1, .spread = spread, .min_spread = 1, .max_spread = 8, .threads = 8};
  const auto fills = [&](double share, double ns) {
    return static_cast<std::uint64_t>(share * 1e9 * kBusyS / (ns - latency.local_chiplet_ns));
  };
  sample.fills.memory = fills(memory, latency.memory_ns);
  sample.fills.remote_chiplet = fills(others, latency.remote_chiplet_ns);
  sample.work = {{.type = 1, .units = 0, .busy_s = kBusyS}};
  return sample;
}

TEST(Steering, WithCountersAQueryIsMovedWhileItRunsAndTheNextBeginsThere) {
  Steering steering(Policy::adaptive, [](auto, std::uint64_t seed) {
    return atl::approach_by_name("adaptive", seed);
  });
  run_once(steering, kText, kEight, run_of(1, 250 * kMiB));
  int spread = steering.begin(kText, 8, kEight).spread;
  ASSERT_EQ(spread, 8);
  for (int i = 0; i < 50; ++i) {
    spread = steering.during(kText, interval(spread, 0, 0.04 * (spread - 1))).spread;
  }
  EXPECT_EQ(spread, 1);
  QueryRun run = run_of(40);
  run.comparable = false;
  steering.end(kText, spread, run, kEight);
  EXPECT_EQ(steering.begin(kText, 1, kEight).spread, 1);
}

TEST(Steering, ARunThatWasSeenByIntervalsIsNotSeenAgainAsAWhole) {
  Script script;
  script.answer = 4;
  Steering steering(Policy::adaptive, script.make());
  run_once(steering, kText, kEight, run_of(1, 100 * kMiB));
  steering.begin(kText, 1, kEight);
  steering.during(kText, interval(4, 0, 0));
  steering.during(kText, interval(4, 0, 0));
  steering.end(kText, 4, run_of(1), kEight);
  EXPECT_EQ(script.samples.size(), 2U);
  run_once(steering, kText, kEight, run_of(1));
  EXPECT_EQ(script.samples.size(), 3U) << "a short one is";
}

TEST(Steering, AnIntervalFromBeforeTheMoveTeachesNothingAndDoesNotCancelIt) {
  Script script;
  Steering steering(Policy::adaptive, script.make());
  run_once(steering, kText, kEight, run_of(1, 100 * kMiB));
  ASSERT_EQ(steering.begin(kText, 8, kEight).spread, 4);
  EXPECT_EQ(steering.during(kText, interval(8, 0, 0)).spread, 4);
  EXPECT_TRUE(script.samples.empty());
  Sample shrunken = interval(2, 0, 0);
  shrunken.max_spread = 2;
  EXPECT_EQ(steering.during(kText, shrunken).spread, 2) << "the most that is left";
  EXPECT_EQ(script.samples.size(), 1U);
}

TEST(Steering, FillsThatDoNotTellTheirSourceAreNoCounters) {
  Script script;
  Steering steering(Policy::adaptive, script.make());
  run_once(steering, kText, kEight, run_of(1, 100 * kMiB));
  ASSERT_EQ(steering.begin(kText, 4, kEight).spread, 4);
  for (const bool memory : {true, false}) {
    Sample sample = interval(4, 0, 0);
    (memory ? sample.fills.remote_chiplet : sample.fills.memory).reset();
    EXPECT_EQ(steering.during(kText, sample).spread, 4);
  }
  EXPECT_TRUE(script.samples.empty());
  steering.end(kText, 4, run_of(1), kEight);
  EXPECT_EQ(script.samples.size(), 1U) << "the whole run";
}

TEST(Steering, WhileAQueryRunsTheOtherPoliciesSayWhatTheySaidAtItsBeginning) {
  Script script;
  Steering steering(Policy::local, script.make());
  EXPECT_EQ(steering.during(kText, interval(4, 1, 0)).spread, 1);
  steering.set_policy(Policy::distributed);
  EXPECT_EQ(steering.during(kText, interval(4, 1, 0)).spread, 8);
  steering.set_policy(Policy::none);
  EXPECT_EQ(steering.during(kText, interval(4, 1, 0)).spread, 4);
  steering.set_policy(Policy::adaptive);
  EXPECT_EQ(steering.during(kText, interval(4, 1, 0)).spread, 4) << "never begun";
  steering.set_by_hand(3);
  EXPECT_EQ(steering.during(kText, interval(4, 1, 0)).spread, 3);
  EXPECT_TRUE(script.samples.empty());
}

// Simulated queries. Their time is a model's: a base, by a factor of the spread, by log-normal
// noise of each run; the first run after a move takes a tenth more.
class SimulatedQueries {
 public:
  explicit SimulatedQueries(std::uint64_t seed)
      : steering_(Policy::adaptive,
                  [seed](auto, std::uint64_t text) {
                    return atl::approach_by_name("adaptive", 1000 * seed + text);
                  }),
        random_(seed) {}

  // `factors`: of the busy time at 1, 2, ... chiplets. Returns the spread.
  int run(const std::string& text, const std::vector<double>& factors, const Bounds& bounds,
          std::optional<std::uint64_t> set = {}) {
    const int spread = steering_.begin(text, last_, bounds).spread;
    const double cold = spread == last_ ? 1 : 1.1;
    last_ = spread;
    const double noise = std::exp(kNoise * normal_(random_));
    QueryRun run = run_of(factors.at(static_cast<std::size_t>(spread - 1)) * cold * noise, set);
    run.fills = {};
    steering_.end(text, spread, run, bounds);
    return spread;
  }

 private:
  static constexpr double kNoise = 0.05;
  Steering steering_;
  std::mt19937_64 random_;
  std::normal_distribution<double> normal_;
  int last_ = 1;
};

Bounds up_to(int most) {
  Bounds bounds = kEight;
  bounds.most = most;
  return bounds;
}

const std::vector<double> kSharing = {1.0, 1.2, 1.4, 1.6};   // best on one chiplet
const std::vector<double> kCapacity = {1.6, 1.4, 1.2, 1.0};  // best on four
const std::vector<double> kIndifferent = {1, 1, 1, 1};

// The share of the runs from..to of a text that were at this spread, over 20 seeds.
double share_at(int spread, const std::vector<double>& factors, std::uint64_t set, int from,
                int to) {
  int there = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SimulatedQueries queries(seed);
    for (int i = 0; i < to; ++i) {
      if (queries.run(kText, factors, up_to(4), set) == spread && i >= from) ++there;
    }
  }
  return there / (20.0 * (to - from));
}

TEST(SimulatedQueries, OneThatSharesEndsLocalThoughItsSetIsLarge) {
  EXPECT_GT(share_at(1, kSharing, 500 * kMiB, 500, 2000), 0.9);
}

TEST(SimulatedQueries, OneThatNeedsTheCachesEndsDistributedThoughItsSetSeemsSmall) {
  EXPECT_GT(share_at(4, kCapacity, 10 * kMiB, 500, 2000), 0.9);
}

TEST(SimulatedQueries, OneThatSharesIsFoundOnEightChipletsThoughTheLastOnesHardlyMatter) {
  std::vector<double> factors;
  for (int chiplets = 1; chiplets <= 8; ++chiplets) {
    factors.push_back(1 + 0.2 * (1 - 1.0 / chiplets) / (1 - 1.0 / 8));
  }
  int local = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SimulatedQueries queries(seed);
    for (int i = 0; i < 2000; ++i) {
      if (queries.run(kText, factors, kEight, 500 * kMiB) == 1 && i >= 1000) ++local;
    }
  }
  EXPECT_GT(local, 0.9 * 20 * 1000);
}

TEST(SimulatedQueries, OneThatDoesNotCareStaysStillMostOfTheTime) {
  // It moves only in trials, and these become rarer: 95 % of 2000 runs begin where the last one
  // ran, and 98 % of the second half of them.
  int still = 0;
  int still_late = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SimulatedQueries queries(seed);
    int last = 0;
    for (int i = 0; i < 2000; ++i) {
      const int spread = queries.run(kText, kIndifferent, up_to(4), 70 * kMiB);
      if (spread == last) {
        ++still;
        if (i >= 1000) ++still_late;
      }
      last = spread;
    }
  }
  EXPECT_GT(still, 0.93 * 20 * 2000);
  EXPECT_GT(still_late, 0.96 * 20 * 1000);
}

TEST(SimulatedQueries, NoneEverLeavesItsBounds) {
  std::mt19937_64 random(1);
  SimulatedQueries queries(1);
  const std::vector<std::vector<double>> jobs = {kSharing, kCapacity, kIndifferent};
  for (int i = 0; i < 3000; ++i) {
    Bounds bounds = up_to(4);
    if (i / 200 % 3 == 1) bounds.most = 3;
    if (i / 200 % 3 == 2) bounds.least = 2;
    const std::size_t job = random() % jobs.size();
    const int spread = queries.run(std::to_string(job), jobs[job], bounds, 70 * kMiB);
    ASSERT_GE(spread, bounds.least) << i;
    ASSERT_LE(spread, bounds.most) << i;
  }
}

TEST(SimulatedQueries, InterleavedTextsAreLearnedApart) {
  SimulatedQueries queries(1);
  int local = 0;
  int distributed = 0;
  for (int i = 0; i < 1500; ++i) {
    const bool late = i >= 750;
    if (queries.run("shares", kSharing, up_to(4), 100 * kMiB) == 1 && late) ++local;
    if (queries.run("needs caches", kCapacity, up_to(4), 100 * kMiB) == 4 && late) ++distributed;
    queries.run("does not care", kIndifferent, up_to(4), 100 * kMiB);
  }
  EXPECT_GT(local, 0.9 * 750);
  EXPECT_GT(distributed, 0.9 * 750);
}

}  // namespace
