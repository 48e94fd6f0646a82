// The bounds of every approach; the rules without memory; algorithm 1 line by line.

#include "atoll/runtime/controller.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "atoll/runtime/places.hpp"
#include "controller/arcas_2025.hpp"

namespace {

using atl::Approach;
using atl::approach_by_name;
using atl::Decision;
using atl::Sample;

const std::vector<std::string> kNames = {
    "adaptive",           "arcas-2025",         "arcas-2025:64",
    "arcas-2025:300:2",   "arcas-2025-printed", "arcas-2025-printed:1000",
    "cache-size-centric", "location-centric",   "static-distributed",
    "static-local",       "static:3",           "switchback"};

Sample sample_of(int spread, int low = 1, int high = 8) {
  return {.elapsed_s = 0.1, .spread = spread, .min_spread = low, .max_spread = high, .threads = 8};
}

TEST(Approaches, AreFoundByTheirNames) {
  for (const std::string& name : kNames) EXPECT_EQ(approach_by_name(name)->name(), name);
  EXPECT_EQ(approach_by_name(atl::kDefaultApproach)->name(), "adaptive");
}

TEST(Approaches, AFaultListsTheNames) {
  for (const char* name :
       {"", "arcas", "static", "static:", "static:0", "static:-1", "static:2x",
        "static:99999999999", "Adaptive", "arcas-2025:", "arcas-2025:0", "arcas-2025-printed:x",
        "arcas-2025:64:", "arcas-2025:64:0", "arcas-2025:64:2:"}) {
    try {
      (void)approach_by_name(name);
      ADD_FAILURE() << name;
    } catch (const atl::RuntimeFault& fault) {
      const std::string text = fault.what();
      EXPECT_NE(text.find("'" + std::string(name) + "'"), std::string::npos) << text;
      for (const std::string known : {"adaptive", "arcas-2025", "cache-size-centric", "static:K",
                                      "location-centric", "static-local", "switchback"}) {
        EXPECT_NE(text.find(known), std::string::npos) << text;
      }
    }
  }
}

// Samples as bad as a broken counter, clock or caller could make them.
class Hostile {
 public:
  explicit Hostile(std::uint64_t seed) : random_(seed) {}

  Sample next(int spread) {
    const int low = pick(1, 4);
    Sample sample{.elapsed_s = number(),
                  .spread = pick(0, 4) == 0 ? pick(-2, 20) : spread,
                  .min_spread = low,
                  .max_spread = pick(low, 12),
                  .threads = pick(-1, 64)};
    sample.fills = {count(), count(), count(), count()};
    if (pick(0, 5) == 0) sample.latency = {number(), number(), number(), number()};
    sample.working_set_bytes = count();
    sample.chiplet_l3_bytes = pick(0, 1) == 0 ? 0 : random_() >> pick(0, 63);
    for (int types = pick(0, 3); types > 0; --types) {
      sample.work.push_back({static_cast<std::uintptr_t>(pick(0, 3)), number(), number()});
    }
    return sample;
  }

 private:
  int pick(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }
  std::optional<std::uint64_t> count() {
    if (pick(0, 3) == 0) return std::nullopt;
    return pick(0, 3) == 0 ? 0 : random_() >> pick(0, 63);
  }
  double number() {
    using Limits = std::numeric_limits<double>;
    constexpr double kOdd[] = {
        0.0,           -1.0,          Limits::quiet_NaN(), Limits::infinity(),
        Limits::max(), Limits::min(), Limits::denorm_min()};
    const int which = pick(0, 20);
    return which < 7 ? kOdd[which] : std::uniform_real_distribution<double>(0, 1)(random_);
  }
  std::mt19937_64 random_;
};

TEST(Approaches, NoneLeavesTheBounds) {
  for (const std::string& name : kNames) {
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
      const auto approach = approach_by_name(name);
      Hostile hostile(seed);
      int spread = 1;
      for (int i = 0; i < 1000; ++i) {
        const Sample sample = hostile.next(spread);
        spread = approach->step(sample).spread;
        ASSERT_GE(spread, sample.min_spread) << name << " seed " << seed << " step " << i;
        ASSERT_LE(spread, sample.max_spread) << name << " seed " << seed << " step " << i;
      }
    }
  }
}

TEST(Approaches, TheSameSamplesGiveTheSameDecisions) {
  for (const std::string& name : kNames) {
    const auto first = approach_by_name(name);
    const auto second = approach_by_name(name);
    Hostile hostile(7);
    int spread = 1;
    for (int i = 0; i < 1000; ++i) {
      const Sample sample = hostile.next(spread);
      const Decision decision = first->step(sample);
      const Decision again = second->step(sample);
      ASSERT_EQ(decision.spread, again.spread) << name;
      ASSERT_EQ(decision.reason, again.reason) << name;
      ASSERT_FALSE(decision.reason.empty()) << name;
      spread = decision.spread;
    }
  }
}

class Wild final : public Approach {
 public:
  explicit Wild(int answer) : answer_(answer) {}
  std::string name() const override { return "wild"; }
  int asked = 0;

 protected:
  Decision decide(const Sample&) override {
    ++asked;
    return {answer_, "wild"};
  }

 private:
  int answer_;
};

TEST(Approaches, OnesOfUsersAreBoundedToo) {
  Wild high(1000);
  EXPECT_EQ(high.step(sample_of(2, 2, 5)).spread, 5);
  Wild low(-1000);
  EXPECT_EQ(low.step(sample_of(3, 2, 5)).spread, 2);
}

TEST(Approaches, AreNotAskedWhenThereIsNothingToDecideOn) {
  Wild wild(4);
  Sample empty = sample_of(3);
  empty.elapsed_s = 0;
  EXPECT_EQ(wild.step(empty).spread, 3);
  EXPECT_EQ(wild.step(sample_of(9)).spread, 8);        // the mask has shrunk
  EXPECT_EQ(wild.step(sample_of(3, 6, 8)).spread, 6);  // more threads have come
  EXPECT_EQ(wild.step(sample_of(5, 6, 3)).spread, 6);  // bounds that cross
  EXPECT_EQ(wild.asked, 0);
  EXPECT_EQ(wild.step(sample_of(3)).spread, 4);
  EXPECT_EQ(wild.asked, 1);
}

TEST(LocationCentric, FollowsTheThreads) {
  const auto approach = approach_by_name("location-centric");
  EXPECT_EQ(approach->step(sample_of(5, 2)).spread, 2);
  EXPECT_EQ(approach->step(sample_of(4, 3)).spread, 3);
  EXPECT_EQ(approach->step(sample_of(3, 1)).spread, 1);
}

TEST(CacheSizeCentric, TakesTheFewestThatHoldTheSet) {
  const auto approach = approach_by_name("cache-size-centric");
  constexpr std::uint64_t kL3 = 1000;
  const auto spread_for = [&](std::optional<std::uint64_t> set, std::uint64_t l3) {
    Sample sample = sample_of(3, 2, 6);
    sample.working_set_bytes = set;
    sample.chiplet_l3_bytes = l3;
    return approach->step(sample).spread;
  };
  EXPECT_EQ(spread_for(0, kL3), 2);
  EXPECT_EQ(spread_for(2000, kL3), 2);
  EXPECT_EQ(spread_for(2001, kL3), 3);
  EXPECT_EQ(spread_for(5000, kL3), 5);
  EXPECT_EQ(spread_for(6001, kL3), 6);
  EXPECT_EQ(spread_for(~std::uint64_t{0}, 1), 6);
  EXPECT_EQ(spread_for(std::nullopt, kL3), 3);  // stays
  EXPECT_EQ(spread_for(5000, 0), 3);
}

TEST(Static, DecidesOnceAndThenOnlyTheBoundsMoveIt) {
  const auto local = approach_by_name("static-local");
  EXPECT_EQ(local->step(sample_of(5, 2, 8)).spread, 2);
  EXPECT_EQ(local->step(sample_of(2, 1, 8)).spread, 2);
  EXPECT_EQ(local->step(sample_of(3, 3, 8)).spread, 3);
  EXPECT_EQ(local->step(sample_of(3, 1, 8)).spread, 2);
  const auto distributed = approach_by_name("static-distributed");
  EXPECT_EQ(distributed->step(sample_of(1, 1, 6)).spread, 6);
  EXPECT_EQ(distributed->step(sample_of(6, 1, 8)).spread, 6);
  const auto three = approach_by_name("static:3");
  EXPECT_EQ(three->step(sample_of(1, 1, 8)).spread, 3);
  EXPECT_EQ(three->step(sample_of(1, 1, 2)).spread, 2);
}

class Algorithm1 : public ::testing::Test {
 protected:
  int step(int spread, std::uint64_t remote, double elapsed_s = 0.1) {
    Sample sample = sample_of(spread);
    sample.elapsed_s = elapsed_s;
    sample.fills.remote_chiplet = remote;
    return approach_.step(sample).spread;
  }
  atl::runtime::Arcas2025 approach_{{.scheduler_timer_ms = 100}};
};

TEST_F(Algorithm1, SpreadsFrom300AndCompactsBelow) {
  EXPECT_EQ(step(4, 300), 5);
  EXPECT_EQ(step(4, 299), 3);
  EXPECT_EQ(step(4, 0), 3);
}

TEST_F(Algorithm1, StopsAtTheBounds) {
  EXPECT_EQ(step(8, 1'000'000), 8);
  EXPECT_EQ(step(1, 0), 1);
}

TEST_F(Algorithm1, TheRateIsPerTimerAndNotPerInterval) {
  EXPECT_EQ(step(4, 599, 0.2), 3);
  EXPECT_EQ(step(4, 600, 0.2), 5);
}

TEST_F(Algorithm1, WaitsForTheTimerAndCountsOn) {
  EXPECT_EQ(step(4, 200, 0.04), 4);
  EXPECT_EQ(step(4, 200, 0.04), 4);
  EXPECT_EQ(step(4, 0, 0.04), 5);  // 400 in 0.12 s: 333 a timer
  EXPECT_EQ(step(5, 0, 0.12), 4);  // and the counter was reset
}

TEST_F(Algorithm1, FillsOfAnotherNodeAreFromOtherChipletsToo) {
  Sample sample = sample_of(4);
  sample.fills.remote_chiplet = 100;
  sample.fills.remote_node = 200;
  EXPECT_EQ(approach_.step(sample).spread, 5);
}

TEST_F(Algorithm1, TheThresholdIsInTheName) {
  for (const auto& [name, spread] :
       {std::pair("arcas-2025:64", 5), std::pair("arcas-2025:65", 3),
        std::pair("arcas-2025-printed:64", 5), std::pair("arcas-2025-printed:65", 3)}) {
    Sample sample = sample_of(4);
    sample.fills.remote_chiplet = 64;
    EXPECT_EQ(approach_by_name(name)->step(sample).spread, spread) << name;
  }
}

TEST_F(Algorithm1, StaysWithoutACounter) { EXPECT_EQ(approach_.step(sample_of(4)).spread, 4); }

}  // namespace
