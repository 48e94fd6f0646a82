// The data sets: their laws, their bounds, and that any part can be made alone.

#include "dataset.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "hash.hpp"
#include "parts.hpp"

namespace atl::workloads {
namespace {

using test::keys_of;
using test::records_of;

std::vector<std::size_t> counts_of(const std::vector<Record>& records, std::size_t groups) {
  std::vector<std::size_t> counts(groups);
  for (const Record& record : records) ++counts.at(static_cast<std::size_t>(record.key));
  return counts;
}

class EachDataset : public testing::TestWithParam<Dataset> {};

TEST_P(EachDataset, APartMadeAloneIsThatPartOfTheWhole) {
  const DataSpec spec{GetParam(), 10'007, 1'500, 7};
  const std::vector<Record> whole = records_of(spec);
  for (const std::size_t first : {0U, 1U, 999U, 10'006U}) {
    std::vector<Record> part(std::min<std::size_t>(500, whole.size() - first));
    fill(spec, first, part);
    EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + static_cast<long>(first)));
  }
}

TEST_P(EachDataset, KeysAndValuesAreWithinTheirBounds) {
  constexpr std::pair<std::uint64_t, std::uint64_t> kBounds[] = {
      {1, 1}, {2, 2}, {1'000, 1}, {5'000, 5'000}, {70'000, 1'025}};
  for (const auto& [records, groups] : kBounds) {
    for (const Record& record : records_of({GetParam(), records, groups, 3})) {
      ASSERT_GE(record.key, 0);
      ASSERT_LT(record.key, static_cast<std::int64_t>(groups));
      ASSERT_GE(record.value, 0);
      ASSERT_LT(record.value, kValues);
    }
  }
}

TEST_P(EachDataset, AnotherSeedGivesOtherValues) {
  const std::vector<Record> one = records_of({GetParam(), 100, 10, 1});
  const std::vector<Record> other = records_of({GetParam(), 100, 10, 2});
  EXPECT_NE(one, other);
  EXPECT_EQ(one, records_of({GetParam(), 100, 10, 1}));
}

TEST_P(EachDataset, ItsNameNamesIt) {
  EXPECT_EQ(dataset_named(name_of(GetParam())), GetParam());
  EXPECT_NE(dataset_names().find(name_of(GetParam())), std::string::npos);
}

// With any vectors, on any processor, in any version: figures of one are compared with another's.
TEST_P(EachDataset, TheRecordsAreTheSameEverywhere) {
  constexpr std::uint64_t kDigests[] = {0x16e19b05e1c62fc6, 0x3a4f2755e0b181b6, 0x944e7945498f59d1,
                                        0xdec2e4016cf24da8, 0x542d368d2a313fe6};
  std::uint64_t digest = 0;
  for (const Record& record : records_of({GetParam(), 100'003, 20'011, 1})) {
    digest = mixed(digest + static_cast<std::uint64_t>(record.key));
    digest = mixed(digest + static_cast<std::uint64_t>(record.value));
  }
  EXPECT_EQ(digest, kDigests[static_cast<std::size_t>(GetParam())]);
}

INSTANTIATE_TEST_SUITE_P(All, EachDataset, testing::ValuesIn(test::kDatasets),
                         [](const auto& info) {
                           std::string name(name_of(info.param));
                           std::erase(name, '-');
                           return name;
                         });

TEST(Dataset, AnUnknownNameIsNone) { EXPECT_FALSE(dataset_named("heavy")); }

TEST(Sequential, KeysComeInTurn) {
  const std::vector<Record> records = records_of({Dataset::kSequential, 10, 4, 1});
  for (std::size_t i = 0; i < records.size(); ++i) {
    EXPECT_EQ(records[i].key, static_cast<std::int64_t>(i % 4));
  }
}

TEST(Runs, EachKeyComesInARow) {
  // Also where the numbers do not divide, and where the fixed-point step is coarse.
  for (const auto& [n, groups] :
       {std::pair{100ULL, 10ULL}, {10ULL, 3ULL}, {65'537ULL, 65'521ULL}}) {
    const std::vector<Record> records = records_of({Dataset::kRuns, n, groups, 1});
    for (std::uint64_t i = 0; i < n; ++i) {
      ASSERT_EQ(records[i].key, static_cast<std::int64_t>(i * groups / n)) << i << " of " << n;
    }
  }
}

TEST(Runs, TheLastOfTheMostRecordsIsExact) {
  const std::uint64_t n = kMostRecords;
  for (const std::uint64_t groups : {std::uint64_t{1'000'000}, n, n - 1, n / 3}) {
    for (const std::uint64_t i : {n - 1, n / 2, n - 12'345, n / 3, n / 3 + 1}) {
      std::vector<Record> one(1);
      fill({Dataset::kRuns, n, groups, 1}, i, one);
      const auto exact = static_cast<std::uint64_t>(static_cast<unsigned __int128>(i) * groups / n);
      EXPECT_EQ(static_cast<std::uint64_t>(one[0].key), exact) << i << " of " << groups;
    }
  }
}

TEST(MovingCluster, TheWindowSlidesFromTheFirstKeyToTheLast) {
  const std::uint64_t n = 400'000;
  const std::uint64_t groups = 10'000;
  const std::vector<Record> records = records_of({Dataset::kMovingCluster, n, groups, 1});
  for (std::uint64_t i = 0; i < n; ++i) {
    const auto start = static_cast<std::int64_t>((groups - kWindow + 1) * i / n);
    ASSERT_GE(records[i].key, start);
    ASSERT_LT(records[i].key, start + static_cast<std::int64_t>(kWindow));
  }
  const std::vector<std::size_t> counts = counts_of(records, groups);
  // The first and the last keys are in the window for a short time only.
  const auto edge = static_cast<long>(kWindow);
  EXPECT_EQ(std::count(counts.begin() + edge, counts.end() - edge, 0U), 0);
}

TEST(Zipf, FrequenciesFollowTheLawWithExponentOneHalf) {
  const std::size_t n = 2'000'000;
  const std::size_t groups = 1'000;
  const std::vector<std::size_t> counts =
      counts_of(records_of({Dataset::kZipf, n, groups, 5}), groups);
  double all = 0;
  for (std::size_t rank = 1; rank <= groups; ++rank)
    all += 1 / std::sqrt(static_cast<double>(rank));
  for (const std::size_t rank : {1U, 2U, 3U, 4U, 10U, 100U, 500U, 1000U}) {
    const double expected = static_cast<double>(n) / std::sqrt(static_cast<double>(rank)) / all;
    // Six standard deviations.
    EXPECT_NEAR(static_cast<double>(counts[rank - 1]), expected, 6 * std::sqrt(expected)) << rank;
  }
}

TEST(HeavyHitter, HalfOfTheRecordsHaveOneKeyAndTheOthersAreEven) {
  const std::size_t n = 1'000'000;
  const std::size_t groups = 100;
  const std::vector<std::size_t> counts =
      counts_of(records_of({Dataset::kHeavyHitter, n, groups, 1}), groups);
  EXPECT_NEAR(static_cast<double>(counts[0]), 0.505 * n, 6 * 500.0);
  for (std::size_t key = 1; key < groups; ++key) {
    EXPECT_NEAR(static_cast<double>(counts[key]), 0.005 * n, 6 * 71.0) << key;
  }
}

TEST(Keys, EachComesOnceInRandomOrder) {
  for (const std::size_t keys : {1U, 2U, 3U, 1000U, 65'536U, 65'537U}) {
    const std::vector<Record> rows = keys_of(keys);
    const std::vector<std::size_t> counts = counts_of(rows, keys);
    EXPECT_TRUE(std::all_of(counts.begin(), counts.end(), [](auto count) { return count == 1; }));
  }
  const std::vector<Record> rows = keys_of(10'000);
  std::size_t rising = 0;
  for (std::size_t at = 1; at < rows.size(); ++at) rising += rows[at].key > rows[at - 1].key;
  EXPECT_NEAR(static_cast<double>(rising), 5'000, 6 * 50.0);
}

TEST(Keys, APartMadeAloneIsThatPartOfTheWhole) {
  const std::vector<Record> whole = keys_of(5'000, 9);
  std::vector<Record> part(100);
  fill_keys(5'000, 9, 1'234, part);
  EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + 1'234));
}

}  // namespace
}  // namespace atl::workloads
