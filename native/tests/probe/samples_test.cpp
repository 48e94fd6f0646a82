// When sampling stops, against intervals of the median that are in the books.

#include "samples.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace {

using atl::probe::Limits;
using atl::probe::median_ranks;
using atl::probe::Ranks;
using atl::probe::repetitions_for;
using atl::probe::Samples;

// Conover, table A3 (the binomial at p = 1/2): the widest tails that leave 95 % between them.
TEST(MedianRanks, AreTheBooks) {
  const auto expect = [](std::size_t count, std::size_t low, std::size_t high) {
    const auto ranks = median_ranks(count);
    ASSERT_TRUE(ranks) << count;
    EXPECT_EQ(ranks->low, low) << count;
    EXPECT_EQ(ranks->high, high) << count;
  };
  expect(6, 0, 5);
  expect(8, 0, 7);
  expect(9, 1, 7);
  expect(10, 1, 8);
  expect(20, 5, 14);
  expect(25, 7, 17);
  expect(100, 39, 60);
}

TEST(MedianRanks, ThereAreNoneBelowSixSamples) {
  for (std::size_t count = 0; count < 6; ++count) EXPECT_FALSE(median_ranks(count)) << count;
}

TEST(MedianRanks, TheTwoFormulasMeet) {
  const auto exact = median_ranks(1000);
  const auto normal = median_ranks(1001);
  ASSERT_TRUE(exact && normal);
  EXPECT_LE(exact->low > normal->low ? exact->low - normal->low : normal->low - exact->low, 1U);
  for (const std::size_t count : {7U, 999U, 1000U, 1001U, 5000U}) {
    const Ranks ranks = median_ranks(count).value();
    EXPECT_EQ(ranks.low + ranks.high, count - 1);
  }
}

Limits limits(double settle, std::size_t samples) {
  return {.budget_ns = 600'000'000'000, .settle = settle, .samples = samples};
}

TEST(Samples, MedianOfOddAndEven) {
  Samples samples(limits(0, 100));
  for (const double value : {3.0, 1.0, 2.0}) samples.add(value);
  EXPECT_EQ(samples.median(), 2.0);
  samples.add(10.0);
  EXPECT_EQ(samples.median(), 2.5);
  EXPECT_EQ(samples.values(), (std::vector<double>{3.0, 1.0, 2.0, 10.0}));
}

TEST(Samples, SettleWhenTheIntervalIsNarrow) {
  Samples samples(limits(0.02, 1000));
  for (int i = 0; i < 5; ++i) samples.add(100);
  EXPECT_FALSE(samples.done());  // five agree, but five are too few
  samples.add(103.9);
  EXPECT_TRUE(samples.settled());  // half of 3.9 is under 2 % of 100
  EXPECT_TRUE(samples.done());
}

TEST(Samples, DoNotSettleWhenItIsWide) {
  Samples samples(limits(0.02, 1000));
  for (int i = 0; i < 5; ++i) samples.add(100);
  samples.add(104.1);
  EXPECT_FALSE(samples.settled());
}

TEST(Samples, OneWildSampleInManyDoesNotKeepThemFromSettling) {
  Samples samples(limits(0.02, 1000));
  for (int i = 0; i < 20; ++i) samples.add(i == 7 ? 1e6 : 100.0);
  EXPECT_TRUE(samples.settled());
}

TEST(Samples, AsManyAsAllowedAreEnough) {
  Samples samples(limits(0, 4));
  for (int i = 0; i < 3; ++i) samples.add(i);
  EXPECT_FALSE(samples.done());
  samples.add(4);
  EXPECT_TRUE(samples.done());
}

TEST(Samples, ThreeAreTakenWithoutAnyBudget) {
  Samples samples({.budget_ns = 0, .settle = 0.5, .samples = 1});
  EXPECT_FALSE(samples.done());
  samples.add(1);
  samples.add(1);
  EXPECT_FALSE(samples.done());
  samples.add(1);
  EXPECT_TRUE(samples.done());
}

// Something of `each_ns` whose timings at these calls take 4 ms longer.
std::size_t repetitions(double each_ns, const std::vector<int>& lost) {
  int call = 0;
  return repetitions_for(100'000, 1 << 20, [&](std::size_t count) {
    const bool is_lost = std::find(lost.begin(), lost.end(), call++) != lost.end();
    return each_ns * static_cast<double>(count) + (is_lost ? 4e6 : 0);
  });
}

TEST(Repetitions, TakeTheTimeOfASample) {
  EXPECT_EQ(repetitions(50, {}), 2000U);
  EXPECT_EQ(repetitions(1e5, {}), 1U);
  EXPECT_EQ(repetitions(1e9, {}), 1U);
  EXPECT_EQ(repetitions(0.001, {}), 1U << 20);
  EXPECT_EQ(repetitions(0, {}), 1U << 20);
}

TEST(Repetitions, ALossOfTheCpuDoesNotMakeThemFew) {
  for (int call = 0; call < 12; ++call) EXPECT_EQ(repetitions(50, {call}), 2000U) << call;
}

}  // namespace
