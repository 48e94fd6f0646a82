// Steering of DuckDB's workers: what each rule says.

#include "steering.hpp"

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
#include "steering_parts.hpp"

namespace {

using namespace atl::test::steering;

TEST(Steering, NobodyMovesForTextsThatRunNothing) {
  Script script;
  Steering steering(Policy::adaptive, script.make());
  EXPECT_EQ(steering.begin(kText, 2, kEight).spread, 8);
  steering.ran_nothing(kText);
  EXPECT_EQ(steering.begin(kText, 2, kEight).spread, 2);
  EXPECT_EQ(steering.begin(kText, 5, kEight).spread, 5);
  EXPECT_FALSE(steering.wants_working_set(kText));
  steering.end(kText, 5, run_of(1, 30 * kMiB), kEight);  // it has run after all
  EXPECT_TRUE(steering.wants_working_set(kText));
  EXPECT_EQ(steering.begin(kText, 5, kEight).spread, 1);
  steering.ran_nothing(kText);
  EXPECT_EQ(steering.begin(kText, 5, kEight).spread, 1);
}

TEST(Steering, ThePlainPoliciesFollowTheBounds) {
  Script script;
  const Bounds bounds{.least = 2, .most = 6, .threads = 8};
  Steering steering(Policy::local, script.make());
  EXPECT_EQ(steering.begin(kText, 4, bounds).spread, 2);
  steering.set_policy(Policy::distributed);
  EXPECT_EQ(steering.begin(kText, 4, bounds).spread, 6);
  steering.set_policy(Policy::none);
  EXPECT_EQ(steering.begin(kText, 4, bounds).spread, 4);
  EXPECT_EQ(steering.begin(kText, 1, bounds).spread, 2);
  EXPECT_EQ(steering.begin(kText, 9, bounds).spread, 6);
  EXPECT_TRUE(script.seeds.empty());
}

TEST(Steering, ASpreadSetByHandHoldsUntilThePolicyIsSet) {
  Script script;
  Steering steering(Policy::local, script.make());
  steering.set_by_hand(5);
  EXPECT_EQ(steering.begin(kText, 1, kEight).spread, 5);
  EXPECT_EQ(steering.begin(kText, 1, {.least = 1, .most = 3}).spread, 3) << "a shrunken mask";
  EXPECT_EQ(steering.begin(kText, 1, kEight).spread, 5);
  steering.set_policy(Policy::local);
  EXPECT_EQ(steering.begin(kText, 1, kEight).spread, 1);
}

TEST(Steering, TheFirstRunIsWideAndTheSecondBeginsWhereTheSetFits) {
  const std::vector<std::pair<std::uint64_t, int>> fits = {
      {0, 1},          {1, 1},
      {32 * kMiB, 1},  {32 * kMiB + 1, 2},
      {100 * kMiB, 4}, {256 * kMiB, 8},
      {257 * kMiB, 8}, {std::numeric_limits<std::uint64_t>::max(), 8}};
  for (const auto& [bytes, chiplets] : fits) {
    Script script;
    Steering steering(Policy::adaptive, script.make());
    EXPECT_EQ(run_once(steering, kText, kEight, run_of(1, bytes)), 8);
    EXPECT_EQ(steering.begin(kText, 8, kEight).spread, chiplets) << bytes;
    EXPECT_TRUE(script.samples.empty()) << "the first run is no sample";
  }
}

TEST(Steering, StaysWideWhereTheSetOrTheL3IsNotKnown) {
  Script script;
  Steering steering(Policy::adaptive, script.make());
  Bounds no_l3 = kEight;
  no_l3.chiplet_l3_bytes = 0;
  run_once(steering, "a", kEight, run_of(1));
  run_once(steering, "b", no_l3, run_of(1, kMiB));
  EXPECT_EQ(steering.begin("a", 1, kEight).spread, 8);
  EXPECT_EQ(steering.begin("b", 1, no_l3).spread, 8);
  // The look may come later.
  run_once(steering, "a", kEight, run_of(1, 40 * kMiB));
  EXPECT_EQ(steering.begin("a", 1, kEight).spread, 2);
}

TEST(Steering, AnApproachSeesEachComparableRunAndDecidesTheNext) {
  Script script;
  Steering steering(Policy::adaptive, script.make());
  run_once(steering, kText, kEight, run_of(1, 100 * kMiB));
  QueryRun run = run_of(4, 90 * kMiB);
  run.fills.memory = 7;
  run.latency.memory_ns = 99;
  EXPECT_EQ(run_once(steering, kText, kEight, run), 4);
  ASSERT_EQ(script.samples.size(), 1U);
  const Sample& sample = script.samples[0];
  EXPECT_EQ(sample.elapsed_s, 0.5);
  EXPECT_EQ(sample.spread, 4);
  EXPECT_EQ(sample.min_spread, 1);
  EXPECT_EQ(sample.max_spread, 8);
  EXPECT_EQ(sample.threads, 8);
  EXPECT_EQ(sample.fills.memory, 7U);
  EXPECT_EQ(sample.latency.memory_ns, 99);
  EXPECT_EQ(sample.working_set_bytes, 100 * kMiB) << "the largest counts";
  EXPECT_EQ(sample.chiplet_l3_bytes, 32 * kMiB);
  ASSERT_EQ(sample.work.size(), 1U);
  EXPECT_EQ(sample.work[0].units, 1);
  EXPECT_EQ(sample.work[0].busy_s, 4);
  const Decision next = steering.begin(kText, 4, kEight);
  EXPECT_EQ(next.spread, 3);
  EXPECT_EQ(next.reason, "scripted");
}

TEST(Steering, WithoutCountersSpreadsAreHalvedAndDoubled) {
  struct Case {
    int least;
    int most;
    std::uint64_t set;  // in chiplets' L3
    std::vector<int> rungs;
  };
  for (const Case& one : {Case{1, 8, 8, {1, 2, 4, 8}}, Case{1, 12, 5, {1, 2, 5, 10, 12}},
                          Case{3, 8, 8, {3, 4, 8}}, Case{2, 3, 1, {2, 3}}}) {
    const Bounds bounds{.least = one.least, .most = one.most, .chiplet_l3_bytes = kMiB};
    for (std::size_t rung = 0; rung < one.rungs.size(); ++rung) {
      Script script;
      script.answer = static_cast<int>(rung) + 1;
      Steering steering(Policy::adaptive, script.make());
      QueryRun run = run_of(1, one.set * kMiB);
      run.fills = {};
      run_once(steering, kText, bounds, run);
      const int from = run_once(steering, kText, bounds, run);
      ASSERT_EQ(script.samples.size(), 1U);
      EXPECT_EQ(script.samples[0].min_spread, 1);
      EXPECT_EQ(script.samples[0].max_spread, static_cast<int>(one.rungs.size()));
      EXPECT_EQ(one.rungs[static_cast<std::size_t>(script.samples[0].spread) - 1], from);
      EXPECT_EQ(steering.begin(kText, 1, bounds).spread, one.rungs[rung]);
    }
  }
}

TEST(Steering, EachTextHasAnApproachAndASeedOfItsOwn) {
  Script script;
  Steering steering(Policy::adaptive, script.make());
  for (const std::string text : {"a", "b", "c"}) {
    for (int i = 0; i < 3; ++i) run_once(steering, text, kEight, run_of(1));
  }
  ASSERT_EQ(script.seeds.size(), 3U);
  EXPECT_NE(script.seeds[0], script.seeds[1]);
  EXPECT_NE(script.seeds[1], script.seeds[2]);
  EXPECT_NE(script.seeds[0], script.seeds[2]);
}

TEST(Steering, ARunThatCannotBeComparedTeachesNoSpread) {
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  Script script;
  Steering steering(Policy::adaptive, script.make());
  run_once(steering, kText, kEight, run_of(1, 100 * kMiB));
  const auto end = [&](const QueryRun& run, int spread = 4) {
    EXPECT_EQ(steering.begin(kText, 1, kEight).spread, 4);
    steering.end(kText, spread, run, kEight);
  };
  QueryRun crowded = run_of(1);
  crowded.comparable = false;
  end(crowded);
  end(run_of(1), 5);  // it did not run where it was sent
  for (const double bad : {0.0, -1.0, kNaN, kInfinity}) {
    QueryRun run = run_of(1);
    run.wall_s = bad;
    end(run);
    run = run_of(1);
    run.busy_s = bad;
    end(run);
  }
  EXPECT_TRUE(script.samples.empty());
  end(run_of(1));
  EXPECT_EQ(script.samples.size(), 1U);
}

TEST(Steering, RunsUnderAnotherPolicyOrByHandDoNotDisturbWhatWasLearned) {
  Script script;
  Steering steering(Policy::adaptive, script.make());
  for (int i = 0; i < 2; ++i) run_once(steering, kText, kEight, run_of(1, 100 * kMiB));
  ASSERT_EQ(script.samples.size(), 1U);
  for (const Policy policy : {Policy::local, Policy::distributed, Policy::none}) {
    steering.set_policy(policy);
    run_once(steering, kText, kEight, run_of(1));
  }
  steering.set_policy(Policy::adaptive);
  steering.set_by_hand(3);
  run_once(steering, kText, kEight, run_of(1));
  steering.set_policy(Policy::adaptive);
  EXPECT_EQ(script.samples.size(), 1U);
  EXPECT_EQ(script.seeds.size(), 1U);
  EXPECT_EQ(steering.begin(kText, 1, kEight).spread, 3);
}

TEST(Steering, WhatMemoryATextNeedsIsLearnedUnderEveryPolicy) {
  Script script;
  Steering steering(Policy::distributed, script.make());
  run_once(steering, kText, kEight, run_of(1, 60 * kMiB));
  steering.set_policy(Policy::adaptive);
  EXPECT_EQ(steering.begin(kText, 1, kEight).spread, 2);
}

TEST(Steering, OneChipletIsNoChoice) {
  Script script;
  Steering steering(Policy::adaptive, script.make());
  const Bounds one{.least = 2, .most = 2, .threads = 8, .chiplet_l3_bytes = 32 * kMiB};
  for (int i = 0; i < 20; ++i) {
    const Decision decision = steering.begin(kText, 2, one);
    EXPECT_EQ(decision.spread, 2);
    EXPECT_NE(decision.reason.find("no choice"), std::string::npos) << decision.reason;
    steering.end(kText, 2, run_of(1, 500 * kMiB), one);
  }
  EXPECT_TRUE(script.seeds.empty());
  // The default bounds are of this kind, too.
  EXPECT_NE(steering.begin("b", 1, Bounds{}).reason.find("no choice"), std::string::npos);
}

TEST(Steering, OtherBoundsBeginATextAnewByItsWorkingSet) {
  Script script;
  script.answer = 7;
  Steering steering(Policy::adaptive, script.make());
  for (int i = 0; i < 3; ++i) run_once(steering, kText, kEight, run_of(1, 100 * kMiB));
  EXPECT_EQ(steering.begin(kText, 1, kEight).spread, 7);
  Bounds shrunken = kEight;
  shrunken.most = 3;
  EXPECT_EQ(steering.begin(kText, 7, shrunken).spread, 3);
  run_once(steering, kText, shrunken, run_of(1));
  EXPECT_EQ(steering.begin(kText, 7, shrunken).spread, 3) << "7 was asked for";
  EXPECT_EQ(script.seeds.size(), 2U);
  EXPECT_EQ(steering.begin(kText, 3, kEight).spread, 4);
  // The mask changes while it runs, and still has the spread at which it does.
  const std::size_t samples = script.samples.size();
  Bounds narrower = kEight;
  narrower.most = 6;
  steering.end(kText, 4, run_of(1), narrower);
  EXPECT_EQ(script.samples.size(), samples);
}

TEST(Steering, AWorkingSetThatGrowsBeyondTwiceItsSizeBeginsATextAnew) {
  Script script;
  Steering steering(Policy::adaptive, script.make());
  for (int i = 0; i < 2; ++i) run_once(steering, kText, kEight, run_of(1, 50 * kMiB));
  EXPECT_EQ(steering.begin(kText, 1, kEight).spread, 3) << "by the approach";
  run_once(steering, kText, kEight, run_of(1, 100 * kMiB));
  EXPECT_EQ(script.seeds.size(), 1U) << "twice is not more than twice";
  run_once(steering, kText, kEight, run_of(1, 101 * kMiB));
  EXPECT_EQ(steering.begin(kText, 1, kEight).spread, 4) << "in small steps, too";
  run_once(steering, kText, kEight, run_of(1));
  EXPECT_EQ(script.seeds.size(), 2U);
}

TEST(Steering, SetsWithinOneL3AreAlike) {
  Script script;
  Steering steering(Policy::adaptive, script.make());
  for (const std::uint64_t bytes : {kMiB / 8, kMiB, 8 * kMiB, 31 * kMiB, 60 * kMiB}) {
    run_once(steering, kText, kEight, run_of(1, bytes));
  }
  EXPECT_EQ(script.seeds.size(), 1U);
  run_once(steering, kText, kEight, run_of(1, 65 * kMiB));
  EXPECT_EQ(steering.begin(kText, 1, kEight).spread, 3);
  EXPECT_EQ(script.samples.size(), 4U) << "all but the first and the last run";
}

TEST(Steering, LooksAtTheWorkingSetRarely) {
  Script script;
  Steering steering(Policy::adaptive, script.make());
  std::vector<int> looks;
  for (int i = 0; i < 200; ++i) {
    const bool look = steering.wants_working_set(kText);
    if (look) looks.push_back(i);
    run_once(steering, kText, kEight, look ? run_of(1, 100 * kMiB) : run_of(1));
  }
  EXPECT_EQ(looks, (std::vector<int>{0, 1, 2, 4, 8, 16, 32, 64, 128, 192}));
}

TEST(Steering, LooksAgainWhereASetSeemsToHaveShrunkAndThenBeginsAnew) {
  Script script;
  script.answer = 5;
  Steering steering(Policy::adaptive, script.make());
  for (int i = 0; i < 16; ++i) run_once(steering, kText, kEight, run_of(1, 200 * kMiB));
  ASSERT_TRUE(steering.wants_working_set(kText));
  run_once(steering, kText, kEight, run_of(1, 40 * kMiB));
  EXPECT_EQ(steering.begin(kText, 1, kEight).spread, 5);
  ASSERT_TRUE(steering.wants_working_set(kText)) << "run 17, as one look is not believed";
  run_once(steering, kText, kEight, run_of(1, 40 * kMiB));
  EXPECT_EQ(steering.begin(kText, 1, kEight).spread, 2);
  EXPECT_FALSE(steering.wants_working_set(kText));
}

TEST(Steering, ForgetsTheTextThatWasUnusedLongest) {
  Script script;
  Steering steering(Policy::adaptive, script.make(), 2);
  run_once(steering, "a", kEight, run_of(1, kMiB));
  run_once(steering, "b", kEight, run_of(1, kMiB));
  EXPECT_EQ(steering.begin("a", 1, kEight).spread, 1);  // a use
  run_once(steering, "c", kEight, run_of(1, kMiB));
  EXPECT_EQ(steering.begin("a", 1, kEight).spread, 1);
  EXPECT_EQ(steering.begin("c", 1, kEight).spread, 1);
  EXPECT_TRUE(steering.wants_working_set("b"));
  EXPECT_EQ(steering.begin("b", 1, kEight).spread, 8) << "forgotten";
  EXPECT_EQ(steering.begin("a", 1, kEight).spread, 8) << "for it";
}

TEST(Steering, ATextThatIsForgottenWhileItRunsDoesNoHarm) {
  Script script;
  Steering steering(Policy::adaptive, script.make(), 0);  // one, then
  steering.begin("a", 1, kEight);
  steering.begin("b", 1, kEight);
  steering.end("a", 8, run_of(1, kMiB), kEight);
  steering.end("b", 8, run_of(1, 40 * kMiB), kEight);
  EXPECT_EQ(steering.begin("b", 1, kEight).spread, 2);
}

TEST(Steering, LongTextsThatDifferAtTheirEndsAreLearnedApart) {
  Script script;
  Steering steering(Policy::adaptive, script.make());
  const std::string stem(1'000'000, 'x');
  run_once(steering, stem + 'a', kEight, run_of(1, kMiB));
  run_once(steering, stem + 'b', kEight, run_of(1, 100 * kMiB));
  EXPECT_EQ(steering.begin(stem + 'a', 1, kEight).spread, 1);
  EXPECT_EQ(steering.begin(stem + 'b', 1, kEight).spread, 4);
  EXPECT_EQ(steering.begin(stem, 1, kEight).spread, 8);
}

}  // namespace
