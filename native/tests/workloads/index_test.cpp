// The indexes of W4: a std::map's answers, and none lost or wrong beside other threads.

#include "indexes/index.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "hash.hpp"
#include "indexes/art.hpp"
#include "indexes/btree.hpp"
#include "indexes/masstree.hpp"
#include "indexes/skip_list.hpp"

namespace atl::workloads {
namespace {

constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

// Keys by their number: one after the other, far apart, at random, and in a few dense groups.
using KeyOf = std::int64_t (*)(std::int64_t number);
constexpr KeyOf kKeys[] = {
    [](std::int64_t number) { return number - 5'000; },
    [](std::int64_t number) { return 1'000'000 - number; },
    [](std::int64_t number) { return kLeast + number * (std::int64_t{1} << 48); },
    [](std::int64_t number) {
      return static_cast<std::int64_t>(mixed(static_cast<std::uint64_t>(number)));
    },
    [](std::int64_t number) { return number % 300 + (number / 300 << number / 300 % 56); },
};

template <Index I>
class Indexes : public testing::Test {};
using All = testing::Types<Art, Masstree, BTree, SkipList>;
TYPED_TEST_SUITE(Indexes, All);

#ifdef __SANITIZE_THREAD__
constexpr std::int64_t kRounds = 4'000;  // by one thread
#else
constexpr std::int64_t kRounds = 40'000;
#endif

TYPED_TEST(Indexes, AnswerAsAMapDoes) {
  std::mt19937_64 random(1);
  for (const KeyOf key_of : kKeys) {
    TypeParam index;
    std::map<std::int64_t, std::int64_t> map;
    for (const std::int64_t edge : {kLeast, kMost, std::int64_t{0}, std::int64_t{-1}}) {
      EXPECT_EQ(find(index, edge), std::nullopt);
    }
    for (std::int64_t round = 0; round < kRounds; ++round) {
      const std::int64_t key = key_of(static_cast<std::int64_t>(random() % 20'000));
      ASSERT_EQ(index.insert(key, round), map.emplace(key, round).second) << key;
      const std::int64_t other = key_of(static_cast<std::int64_t>(random() % 20'000));
      const auto expected = map.find(other);
      ASSERT_EQ(find(index, other), expected == map.end()
                                        ? std::nullopt
                                        : std::optional<std::int64_t>(expected->second))
          << other;
    }
    index.settle();
    for (const auto& [key, value] : map) {
      ASSERT_EQ(find(index, key), value) << key;
      for (const std::int64_t near : {key ^ 1, key ^ 256, key ^ kLeast}) {
        ASSERT_EQ(find(index, near).has_value(), map.contains(near)) << near;
      }
    }
  }
}

TYPED_TEST(Indexes, HoldTheLeastAndTheMostOfKeysAndValues) {
  TypeParam index;
  for (const std::int64_t key : {kMost, std::int64_t{0}, kLeast, std::int64_t{-1}}) {
    EXPECT_TRUE(index.insert(key, key == 0 ? 0 : kMost));
    EXPECT_FALSE(index.insert(key, 5));
  }
  for (const std::int64_t key : {kMost, kLeast, std::int64_t{-1}}) {
    EXPECT_EQ(find(index, key), kMost);
  }
  EXPECT_EQ(find(index, 0), 0);
  EXPECT_EQ(find(index, 1), std::nullopt);
}

// Two threads insert the same keys in other orders, two look them up; what was once there stays.
TYPED_TEST(Indexes, LoseNothingBesideOtherThreads) {
  constexpr std::int64_t kCount = 20'000;
  for (const KeyOf key_of : kKeys) {
    TypeParam index;
    std::atomic<std::int64_t> inserted{0};
    std::atomic<std::int64_t> ready{0};
    const auto value_of = [](std::int64_t key) { return key & kMost; };
    const auto insert_all = [&](std::uint64_t seed) {
      for (std::int64_t number = 0; number < kCount; ++number) {
        // A walk over all residues: an odd step, and a power of two at least as large.
        const auto at = (static_cast<std::uint64_t>(number) * (2 * seed + 4'001)) % 32'768;
        const std::int64_t key = key_of(static_cast<std::int64_t>(at));
        inserted += index.insert(key, value_of(key));
        if (seed == 0) ready.store(number + 1, std::memory_order_release);
      }
    };
    const auto look = [&] {
      for (std::int64_t number = 0; number < kCount;) {
        const std::int64_t until = ready.load(std::memory_order_acquire);
        if (number == until) std::this_thread::yield();
        for (; number < until; ++number) {
          const auto at = (static_cast<std::uint64_t>(number) * 4'001) % 32'768;
          const std::int64_t key = key_of(static_cast<std::int64_t>(at));
          ASSERT_EQ(find(index, key), value_of(key)) << key;
          const auto later = key_of(static_cast<std::int64_t>(at ^ 1));
          const auto found = find(index, later);
          ASSERT_TRUE(!found || *found == value_of(later)) << later;
        }
      }
    };
    std::vector<std::thread> threads;
    threads.emplace_back(insert_all, 0);
    threads.emplace_back(insert_all, 7);
    threads.emplace_back(look);
    threads.emplace_back(look);
    for (std::thread& thread : threads) thread.join();
    std::map<std::int64_t, int> distinct;
    for (std::int64_t number = 0; number < kCount; ++number) {
      for (const std::uint64_t step : {4'001U, 4'015U}) {
        ++distinct[key_of(
            static_cast<std::int64_t>(static_cast<std::uint64_t>(number) * step % 32'768))];
      }
    }
    EXPECT_EQ(inserted, static_cast<std::int64_t>(distinct.size()));
    for (const auto& [key, times] : distinct) ASSERT_EQ(find(index, key), value_of(key)) << key;
  }
}

}  // namespace
}  // namespace atl::workloads
