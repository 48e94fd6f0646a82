// The tables and lists under the workloads.

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <map>
#include <new>
#include <span>
#include <thread>
#include <vector>

#include "groups.hpp"
#include "join_fast.hpp"
#include "numbering.hpp"
#include "partitions.hpp"
#include "plain_team.hpp"
#include "shared_table.hpp"

namespace atl::workloads {
namespace {

std::map<std::int64_t, long> drained(SharedTable<long>& table) {
  std::map<std::int64_t, long> found;
  table.drain(0, table.buckets(), [&](std::int64_t key, long& state) {
    EXPECT_TRUE(found.emplace(key, state).second) << key << " twice";
  });
  return found;
}

TEST(SharedTable, NoUpdateOfFourThreadsIsLost) {
  // Few buckets, so that chains are long and locks are contended.
  SharedTable<long> table(4);
  std::vector<std::thread> threads;
  constexpr long kRounds = 2'000;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&] {
      for (long round = 0; round < kRounds; ++round) {
        for (std::int64_t key = -10; key < 10; ++key) table.update(key, [](long& n) { ++n; });
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::map<std::int64_t, long> found = drained(table);
  EXPECT_EQ(found.size(), 20U);
  for (const auto& [key, count] : found) EXPECT_EQ(count, 4 * kRounds) << key;
  EXPECT_TRUE(drained(table).empty());
}

TEST(SharedTable, AChangeThatThrowsLeavesTheBucketUnlocked) {
  SharedTable<long> table(1);
  EXPECT_THROW(table.update(1, [](long&) { throw std::bad_alloc(); }), std::bad_alloc);
  table.update(1, [](long& n) { n = 5; });
  EXPECT_EQ(drained(table).at(1), 5);
}

TEST(TwiceMedian, OfOneOfTwoAndOfMany) {
  const auto of = [](std::vector<std::int64_t> values) { return twice_median(values); };
  EXPECT_EQ(of({3}), 6);
  EXPECT_EQ(of({5, 2}), 7);
  EXPECT_EQ(of({9, 1, 5}), 10);
  EXPECT_EQ(of({1, 8, 4, 4}), 8);
  EXPECT_EQ(of({-3, -4}), -7);
}

TEST(Numbering, NumbersKeysAsTheyComeAndForgetsThemAll) {
  Numbering numbering(2);  // grows
  for (int round = 0; round < 3; ++round) {
    for (std::uint32_t number = 0; number < 1'000; ++number) {
      const auto key = static_cast<std::int64_t>(number) * 7 - 2'000 + round;
      ASSERT_EQ(numbering.of(key), number);
      ASSERT_EQ(numbering.of(key), number);
      ASSERT_EQ(numbering.keys()[number], key);
    }
    numbering.clear();
    EXPECT_TRUE(numbering.keys().empty());
  }
}

TEST(Partitions, HoldEachRecordOnceInOrderWithEqualKeysTogether) {
  Partitions partitions(4);
  constexpr std::int64_t kRecords = 50'000;
  for (std::int64_t at = 0; at < kRecords; ++at) partitions.add({at % 1'000, at});
  std::vector<std::size_t> home(1'000, partitions.size());
  std::int64_t seen = 0;
  for (std::size_t partition = 0; partition < partitions.size(); ++partition) {
    std::int64_t before = -1;
    partitions.blocks(partition, [&](std::span<const Record> block) {
      for (const Record& record : block) {
        ++seen;
        ASSERT_GT(record.value, before);
        before = record.value;
        std::size_t& place = home[static_cast<std::size_t>(record.key)];
        ASSERT_TRUE(place == partitions.size() || place == partition);
        place = partition;
      }
    });
  }
  EXPECT_EQ(seen, kRecords);
  partitions.release(3);
  partitions.blocks(3, [](std::span<const Record>) { ADD_FAILURE() << "released"; });
}

TEST(OpenTable, FindsEqualKeysAndNoOthers) {
  OpenTable table(4);
  for (const Record& row : {Record{0, 10}, Record{0, 20}, Record{7, 30}}) table.insert(row);
  const auto sum = [&](std::int64_t key) {
    std::int64_t found = 0;
    table.find(table.place(key), key, [&](const Record& row) { found += row.value; });
    return found;
  };
  EXPECT_EQ(sum(0), 30);
  EXPECT_EQ(sum(7), 30);
  EXPECT_EQ(sum(1), 0);
}

TEST(KeyRange, IsWithinAsManyKeysAsItHas) {
  KeyRange range;
  EXPECT_FALSE(range.within(100));
  for (const std::int64_t key : {7, -1}) range.add(key);
  EXPECT_TRUE(range.within(9));
  EXPECT_FALSE(range.within(8));
  for (const auto end :
       {std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max()}) {
    range.add(end);
  }
  EXPECT_FALSE(range.within(std::numeric_limits<std::size_t>::max()));
}

TEST(ByKey, TakesKeysThatLieCloseAndComeOnce) {
  PlainTeam team(2);
  const auto taken = [&](const std::vector<Record>& rows) {
    return by_key(team, std::span<const Record>(rows)).has_value();
  };
  EXPECT_TRUE(taken({{5, 1}}));
  EXPECT_TRUE(taken({{-3, 1}, {4, 0}}));
  EXPECT_FALSE(taken({{-3, 1}, {5, 0}}));  // nine places for two rows
  EXPECT_FALSE(taken({{5, 1}, {5, 2}}));
  EXPECT_FALSE(taken({}));
}

}  // namespace
}  // namespace atl::workloads
