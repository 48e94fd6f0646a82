// churn's items, its account of what lives, and that a wrong byte is found.

#include "churn.hpp"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "ask.hpp"
#include "churn_kernels.hpp"

namespace atl::probe {
namespace {

std::uint64_t random_of(std::uint64_t index) {
  index = (index ^ (index >> 31)) * 0x9e3779b97f4a7c15;
  index = (index ^ (index >> 29)) * 0xbf58476d1ce4e5b9;
  return index ^ (index >> 32);
}

TEST(ChurnSize, EachClassIsHalfAsFrequentAsTheOneBelow) {
  constexpr std::size_t kDraws = 1 << 18;
  std::array<std::size_t, kMostClassBits + 1> drawn{};
  for (std::size_t draw = 0; draw < kDraws; ++draw) {
    const std::size_t bytes = churn_size(random_of(draw + 1));
    ASSERT_GE(bytes, kChurnLeastBytes);
    ASSERT_LE(bytes, kChurnMostBytes);
    ++drawn.at(static_cast<std::size_t>(std::bit_width(bytes - 1)));
  }
  for (std::size_t bits = kLeastClassBits; bits < kLeastClassBits + 6; ++bits) {
    const double share = static_cast<double>(drawn[bits]) / static_cast<double>(kDraws);
    const double expected = 1.0 / static_cast<double>(2ULL << (bits - kLeastClassBits));
    EXPECT_NEAR(share, expected, expected / 10) << bits;
  }
  EXPECT_GT(drawn[kMostClassBits], 0U);
}

TEST(ChurnItem, AnyWrongByteIsFound) {
  for (const std::size_t bytes : {16, 17, 31, 100, 1027}) {
    std::vector<std::byte> item(bytes);
    churn_write(item.data(), bytes);
    ASSERT_EQ(churn_check(item.data()), bytes);
    for (std::size_t at = 0; at < bytes; ++at) {
      item[at] ^= std::byte{0xff};
      // A wrong size would have more bytes read than there are: its check is below.
      if (at >= 8) {
        ASSERT_EQ(churn_check(item.data()), 0U) << bytes << " at " << at;
      }
      item[at] ^= std::byte{0xff};
    }
    const std::uint64_t absurd = kChurnMostBytes + 1;
    std::memcpy(item.data(), &absurd, sizeof absurd);
    EXPECT_EQ(churn_check(item.data()), 0U);
  }
}

TEST(ChurnItem, AnItemThatWasCopiedElsewhereIsFound) {
  std::vector<std::byte> item(64);
  churn_write(item.data(), item.size());
  const std::vector<std::byte> copy = item;
  EXPECT_EQ(churn_check(copy.data()), 0U);
}

struct Pair {
  std::vector<void*> slots[2];
  std::vector<ChurnBox> boxes[2];
  Pair() {
    for (int rank = 0; rank < 2; ++rank) {
      slots[rank].resize(128);
      boxes[rank] = std::vector<ChurnBox>(16);
    }
  }
  ChurnThread thread(std::size_t rank) {
    return {slots[rank], boxes[rank], boxes[1 - rank], 40 + rank};
  }
};

TEST(ChurnThread, WhatTwoThreadsAskedForIsFreedByTheEnd) {
  Pair pair;
  ChurnThread first = pair.thread(0);
  ChurnThread second = pair.thread(1);
  std::thread other([&] { second.run(20'000); });
  first.run(20'000);
  other.join();
  EXPECT_GT(first.live_bytes() + second.live_bytes(), 0);
  first.drain();
  second.drain();
  EXPECT_EQ(first.live_bytes() + second.live_bytes(), 0);
  EXPECT_TRUE(first.right());
  EXPECT_TRUE(second.right());
}

TEST(ChurnThread, TheNullRunKeepsTheSameAccount) {
  Pair pair;
  Pair null_pair;
  ChurnThread thread = pair.thread(0);
  ChurnThread null_thread = null_pair.thread(0);
  thread.run(5'000);
  null_thread.run_null(5'000);
  EXPECT_EQ(thread.live_bytes(), null_thread.live_bytes());
  // The other's box, so that all is freed.
  ChurnThread rest = pair.thread(1);
  thread.drain();
  rest.drain();
  EXPECT_EQ(thread.live_bytes() + rest.live_bytes(), 0);
}

TEST(ChurnThread, AnItemThatSomebodyElseWroteIsFound) {
  Pair pair;
  ChurnThread thread = pair.thread(0);
  thread.run(200);
  for (void* const item : pair.slots[0]) {
    if (item == nullptr) continue;
    static_cast<std::byte*>(item)[12] ^= std::byte{1};
    break;
  }
  pair.thread(1).drain();
  thread.drain();
  EXPECT_FALSE(thread.right());
}

TEST(Churn, AnswersWithTimesAndBytes) {
  const std::string cpus = first_cpus(2);
  for (const char* null_run : {"false", "true"}) {
    const Json answer = churn(Request(Json::parse(
        R"({"budget_ns": 1000000, "samples": 3, "operations": 3000, "seed": 1, "cpus": )" + cpus +
        R"(, "null": )" + null_run + "}")));
    EXPECT_EQ(answer["wall_ns_samples"].size(), 3U);
    EXPECT_GT(answer["requested_bytes"].get<std::int64_t>(), 0);
    EXPECT_FALSE(answer["allocator_reached"].get<std::string>().empty());
  }
}

TEST(ResidentBytes, GrowsWithWhatIsTouched) {
  constexpr std::size_t kBytes = 64 << 20;
  const std::uint64_t before = resident_bytes();
  EXPECT_GT(before, 0U);
  std::vector<char> memory(kBytes, 1);
  EXPECT_GE(resident_bytes(), before + kBytes / 2);
}

}  // namespace
}  // namespace atl::probe
