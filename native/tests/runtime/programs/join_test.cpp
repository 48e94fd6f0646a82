// A radix hash join: both sides are partitioned into worker-local buckets, each partition is joined
// by one task, and what matches is counted by worker.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <random>
#include <stdexcept>
#include <unordered_map>
#include <utility>
#include <vector>

#include "atoll/runtime/parallel.hpp"
#include "atoll/runtime/runtime.hpp"
#include "atoll/runtime/this_task.hpp"
#include "atoll/runtime/worker_local.hpp"
#include "runtime/parts.hpp"

namespace {

struct Row {
  std::uint32_t key;
  std::uint32_t value;
};
using Rows = std::vector<Row>;
constexpr std::size_t kPartitions = 64;
using Partitions = std::array<Rows, kPartitions>;

Rows rows_of(std::size_t count, std::uint32_t keys, unsigned seed) {
  std::mt19937 random(seed);
  Rows rows;
  for (std::size_t at = 0; at < count; ++at) {
    // Half of the rows have one of four keys: some partitions are much larger.
    const auto key = random() % 2 == 0 ? random() % 4 : random() % keys;
    rows.push_back({static_cast<std::uint32_t>(key), static_cast<std::uint32_t>(random())});
  }
  return rows;
}

std::vector<Partitions> partitioned(const Rows& rows) {
  atl::WorkerLocal<Partitions> buckets;
  atl::parallel_for(std::size_t{0}, rows.size(), [&](std::size_t first, std::size_t last) {
    auto mine = buckets.lease();
    for (std::size_t at = first; at < last; ++at) {
      (*mine)[rows[at].key % kPartitions].push_back(rows[at]);
      if (at % 1000 == 0) atl::yield();  // with a lease, maybe to another worker
    }
  });
  std::vector<Partitions> all;
  buckets.for_each([&](Partitions& one) { all.push_back(std::move(one)); });
  return all;
}

struct Result {
  std::uint64_t matches = 0;
  std::uint64_t sum = 0;
  bool operator==(const Result&) const = default;
};
Result add(const Result& one, const Result& other) {
  return {one.matches + other.matches, one.sum + other.sum};
}

Result join(const Rows& build, const Rows& probe) {
  const std::vector<Partitions> built = partitioned(build);
  const std::vector<Partitions> probed = partitioned(probe);
  atl::WorkerLocal<Result> results;
  atl::parallel_for(
      std::size_t{0}, kPartitions,
      [&](std::size_t partition) {
        std::unordered_multimap<std::uint32_t, std::uint32_t> table;
        for (const Partitions& part : built) {
          for (const Row& row : part[partition]) table.emplace(row.key, row.value);
        }
        auto mine = results.lease();
        for (const Partitions& part : probed) {
          for (const Row& row : part[partition]) {
            const auto [first, last] = table.equal_range(row.key);
            for (auto match = first; match != last; ++match) {
              ++mine->matches;
              mine->sum += std::uint64_t{match->second} ^ row.value;
            }
          }
        }
      },
      1);
  return results.combine(add);
}

Result join_alone(const Rows& build, const Rows& probe) {
  std::unordered_multimap<std::uint32_t, std::uint32_t> table;
  for (const Row& row : build) table.emplace(row.key, row.value);
  Result result;
  for (const Row& row : probe) {
    const auto [first, last] = table.equal_range(row.key);
    for (auto match = first; match != last; ++match) {
      result = add(result, {1, std::uint64_t{match->second} ^ row.value});
    }
  }
  return result;
}

class Joins : public testing::TestWithParam<int> {};

TEST_P(Joins, ARadixJoinFindsWhatOneLoopFinds) {
  atl::Runtime runtime(atl::test::with_workers(GetParam()));
  const Rows build = rows_of(400, 300, 1);
  const Rows probe = rows_of(20'000, 300, 2);
  EXPECT_EQ(runtime.run([&] { return join(build, probe); }), join_alone(build, probe));
  EXPECT_EQ(runtime.run([&] { return join({}, probe); }), Result{});
}

TEST_P(Joins, ManyJoinsAtOnceKeepTheirRowsApart) {
  atl::Runtime runtime(atl::test::with_workers(GetParam()));
  runtime.run([] {
    std::vector<atl::Task<bool>> joins;
    for (unsigned seed = 0; seed < 20; ++seed) {
      joins.push_back(atl::spawn([seed] {
        const Rows build = rows_of(50, 100, 3 * seed);
        const Rows probe = rows_of(2000, 100, 3 * seed + 1);
        return join(build, probe) == join_alone(build, probe);
      }));
    }
    for (atl::Task<bool>& one : joins) EXPECT_TRUE(one.join());
  });
}

TEST_P(Joins, ABuildThatFailsEndsTheJoinAndLeavesTheRuntimeUsable) {
  atl::Runtime runtime(atl::test::with_workers(GetParam()));
  for (int round = 0; round < 20; ++round) {
    EXPECT_THROW(runtime.run([] {
      atl::WorkerLocal<Rows> rows;
      atl::parallel_for(0, 10'000, [&](int at) {
        auto mine = rows.lease();
        mine->push_back({});
        if (at == 5000) throw std::runtime_error("no memory for the table");
      });
    }),
                 std::runtime_error);
  }
  EXPECT_EQ(runtime.run([] { return 1; }), 1);
}

INSTANTIATE_TEST_SUITE_P(Workers, Joins, testing::Values(1, 2, 8));

}  // namespace
