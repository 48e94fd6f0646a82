// W1 and W2, each variant on each team: the answer that sorting gives, for every data set.

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "aggregate_fast.hpp"
#include "aggregate_paper.hpp"
#include "atoll_team.hpp"
#include "parts.hpp"
#include "plain_team.hpp"
#include "verify.hpp"

namespace atl::workloads {
namespace {

constexpr DataSpec kSizes[] = {
    {Dataset::kZipf, 1, 1, 1},
    {Dataset::kZipf, 1'000, 1, 1},
    {Dataset::kZipf, 3'000, 3'000, 1},
    {Dataset::kZipf, 120'000, 2'500, 1},
};

template <class Team>
class Aggregates : public testing::Test {
 protected:
  // check(team, records, groups) for all data.
  template <class Check>
  void each(Check&& check) {
    for (const int threads : test::kTeams) {
      Team team(threads);
      for (DataSpec spec : kSizes) {
        for (const Dataset dataset : test::kDatasets) {
          spec.dataset = dataset;
          const std::vector<Record> records = test::records_of(spec);
          SCOPED_TRACE(std::string(name_of(dataset)) + ", " + std::to_string(spec.records) +
                       " records, " + std::to_string(threads) + " threads");
          team.run([&] { check(team, records, spec.groups); });
        }
      }
    }
  }
};
using Both = testing::Types<PlainTeam, AtollTeam>;
TYPED_TEST_SUITE(Aggregates, Both);

TYPED_TEST(Aggregates, MediansOfThePaper) {
  this->each([](TypeParam& team, const std::vector<Record>& records, std::size_t groups) {
    EXPECT_TRUE(right_medians(records, median_paper(team, records, groups)));
  });
}

TYPED_TEST(Aggregates, MediansFast) {
  this->each([](TypeParam& team, const std::vector<Record>& records, std::size_t groups) {
    EXPECT_TRUE(right_medians(records, median_fast(team, records, groups)));
  });
}

TYPED_TEST(Aggregates, CountsOfThePaper) {
  this->each([](TypeParam& team, const std::vector<Record>& records, std::size_t groups) {
    EXPECT_TRUE(right_counts(records, count_paper(team, records, groups)));
  });
}

TYPED_TEST(Aggregates, CountsFast) {
  this->each([](TypeParam& team, const std::vector<Record>& records, std::size_t groups) {
    EXPECT_TRUE(right_counts(records, count_fast(team, records, groups)));
  });
}

// The number of groups is an expectation, not a promise; and keys may be any.
TYPED_TEST(Aggregates, MoreGroupsThanExpectedAndNegativeKeys) {
  std::vector<Record> records;
  for (std::int64_t at = 0; at < 20'000; ++at) records.push_back({at % 7'000 - 3'500, at});
  TypeParam team(2);
  team.run([&] {
    EXPECT_TRUE(right_medians(records, median_paper(team, records, 3)));
    EXPECT_TRUE(right_medians(records, median_fast(team, records, 3)));
    EXPECT_TRUE(right_counts(records, count_paper(team, records, 3)));
    EXPECT_TRUE(right_counts(records, count_fast(team, records, 3)));
  });
}

// Keys that all threads answer: one, some in one partition, equal values, values in order, few
// distinct ones, the ends of all numbers.
TYPED_TEST(Aggregates, MediansOfHeavyKeys) {
  using Limits = std::numeric_limits<std::int64_t>;
  constexpr std::int64_t kRecords = 100'000;
  const auto expect_right = [](auto key_of, auto value_of) {
    std::vector<Record> records;
    for (std::int64_t at = 0; at < kRecords; ++at) records.push_back({key_of(at), value_of(at)});
    for (const int threads : test::kTeams) {
      TypeParam team(threads);
      team.run([&] { EXPECT_TRUE(right_medians(records, median_fast(team, records, 2'000))); });
    }
  };
  const auto half = [](std::int64_t at) { return at % 2 == 0 ? 7 : at % 2'000; };
  expect_right(half, [](std::int64_t at) { return static_cast<std::int64_t>(hash_of(at)); });
  expect_right(half, [](std::int64_t) { return 5; });
  expect_right(half, [](std::int64_t at) { return at; });
  expect_right(half,
               [](std::int64_t at) { return at % 4 == 0 ? Limits::min() / 2 : Limits::max() / 2; });
  expect_right(half, [](std::int64_t at) { return at < kRecords / 2 ? 1 : 2; });
  expect_right([](std::int64_t at) { return at % 3; }, [](std::int64_t at) { return -at; });
  expect_right([](std::int64_t at) { return at % 40; }, [](std::int64_t at) { return at / 7; });
  expect_right([](std::int64_t) { return -1; }, [](std::int64_t at) { return at * at; });
}

const std::vector<Record> kThree = {{1, 10}, {2, 5}, {1, 13}};

TEST(RightMedians, AcceptTheRightAnswerInAnyPartsOnly) {
  EXPECT_TRUE(right_medians(kThree, {{{2, 10}, {1, 23}}}));
  EXPECT_TRUE(right_medians(kThree, {{{1, 23}}, {}, {{2, 10}}}));
  EXPECT_FALSE(right_medians(kThree, {{{1, 23}}}));
  EXPECT_FALSE(right_medians(kThree, {{{1, 23}, {2, 11}}}));
  EXPECT_FALSE(right_medians(kThree, {{{1, 23}, {3, 10}}}));
  EXPECT_FALSE(right_medians(kThree, {{{1, 23}, {2, 10}}, {{2, 10}}}));
}

TEST(RightCounts, AcceptTheRightAnswerOnly) {
  EXPECT_TRUE(right_counts(kThree, {{{2, 1}}, {{1, 2}}}));
  EXPECT_FALSE(right_counts(kThree, {{{2, 1}}, {{1, 1}}}));
  EXPECT_FALSE(right_counts(kThree, {{{2, 1}}, {{1, 2}}, {{0, 0}}}));
}

}  // namespace
}  // namespace atl::workloads
