// How an array is split among ranks, for many sizes.

#include "memory/partition.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>

#include "atoll/runtime/array.hpp"
#include "memory/page_policy.hpp"

namespace {

using atl::runtime::block_begin;

// Every property that the header promises, for one split.
void expect_good(std::size_t bytes, std::size_t page, int ranks) {
  ASSERT_EQ(block_begin(bytes, page, ranks, 0), 0U);
  ASSERT_EQ(block_begin(bytes, page, ranks, ranks), bytes);
  const long double even = static_cast<long double>(bytes) / ranks;
  for (int rank = 0; rank < ranks; ++rank) {
    const std::size_t begin = block_begin(bytes, page, ranks, rank);
    const std::size_t end = block_begin(bytes, page, ranks, rank + 1);
    ASSERT_LE(begin, end) << bytes << " bytes, rank " << rank << " of " << ranks;
    ASSERT_TRUE(begin % page == 0 || begin == bytes);
    ASSERT_LE(std::abs(static_cast<long double>(end - begin) - even), page)
        << bytes << " bytes, rank " << rank << " of " << ranks;
  }
}

TEST(RuntimeMemoryPartition, IsByPagesAndWithinAPageOfEven) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 500; ++round) {
    const std::size_t page = std::size_t{1} << (std::array{12, 16, 21, 30}[random() % 4]);
    const std::size_t bytes = random() >> (random() % 63 + 1);
    expect_good(bytes, page, static_cast<int>(random() % 300) + 1);
  }
}

TEST(RuntimeMemoryPartition, HoldsAtTheEdges) {
  for (const std::size_t bytes :
       {0UL, 1UL, 4095UL, 4096UL, 4097UL, 8192UL, std::numeric_limits<std::size_t>::max() / 2}) {
    for (const int ranks : {1, 2, 3, 7, 64, 1000}) expect_good(bytes, 4096, ranks);
  }
}

TEST(RuntimeMemoryPartition, FewPagesGoToSomeRanksWhole) {
  // Two pages for four ranks: boundaries at half pages go up, so ranks 0 and 2 have one each.
  EXPECT_EQ(block_begin(8192, 4096, 4, 1), 4096U);
  EXPECT_EQ(block_begin(8192, 4096, 4, 2), 4096U);
  EXPECT_EQ(block_begin(8192, 4096, 4, 3), 8192U);
}

struct Odd {  // does not divide a page
  char bytes[24];
};

template <typename T>
void expect_every_element_once(std::size_t size, int ranks) {
  const atl::NodeMap map{{0}, std::vector<int>(static_cast<std::size_t>(ranks), 0)};
  auto array = atl::Array<T>::partitioned(size, map);
  ASSERT_EQ(array.parts(), ranks);
  const T* expected = array.data();
  for (int rank = 0; rank < ranks; ++rank) {
    const auto part = array.part(rank);
    ASSERT_EQ(part.data(), expected) << "rank " << rank;
    expected += part.size();
    const auto even = static_cast<double>(size * sizeof(T)) / ranks;
    ASSERT_LE(std::abs(static_cast<double>(part.size_bytes()) - even),
              static_cast<double>(atl::runtime::page_bytes() + sizeof(T)));
    if (part.empty()) continue;
    // It begins in its own page: at most an element of the rank before reaches over.
    const auto over = reinterpret_cast<std::uintptr_t>(part.data()) % atl::runtime::page_bytes();
    ASSERT_LT(over, sizeof(T));
  }
  ASSERT_EQ(expected, array.data() + size);
}

TEST(RuntimeMemoryPartition, EveryElementIsInOnePart) {
  std::mt19937 random(2);
  for (int round = 0; round < 30; ++round) {
    const std::size_t size = random() % 40'000;
    const int ranks = static_cast<int>(random() % 40) + 1;
    expect_every_element_once<double>(size, ranks);
    expect_every_element_once<Odd>(size, ranks);
    expect_every_element_once<char>(size, ranks);
  }
}

}  // namespace
