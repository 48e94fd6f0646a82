// Access patterns whose counts follow from the sizes of the caches by arithmetic.
#include "cachesim/caches.hpp"

#include <gtest/gtest.h>

#include "cachesim/parts.hpp"

namespace atl::cachesim {
namespace {

// Of Built: L1 8 KiB, L2 32 KiB, L3 128 KiB.
constexpr std::uint64_t kKib = 1024;
constexpr std::uint64_t kRounds = 5;

class CachesOfTwoNodes : public testing::Test {
 protected:
  // Sweeps over `bytes` until the caches are as they stay, then counts kRounds more.
  void settle_and_count(std::uint64_t bytes, std::uint64_t start = 0) {
    for (int round = 0; round < 3; ++round) simulated_.sweep(0, start, bytes);
    simulated_.forget();
    for (std::uint64_t round = 0; round < kRounds; ++round) simulated_.sweep(0, start, bytes);
  }

  Simulated simulated_{Built{}.machine()};
};

TEST_F(CachesOfTwoNodes, ASetThatFitsIntoL1MissesNothing) {
  settle_and_count(8 * kKib);
  EXPECT_EQ(simulated_.rows[0][kLoads], kRounds * 8 * kKib / kLine);
  EXPECT_EQ(simulated_.l2_hits(0), 0U);
  EXPECT_EQ(simulated_.fills(0), 0U);
}

TEST_F(CachesOfTwoNodes, OneWayMoreThanL1MissesItAlways) {
  // With the least recently used line replaced, a sweep over three ways of two finds none.
  settle_and_count(12 * kKib);
  EXPECT_EQ(simulated_.l2_hits(0), kRounds * 12 * kKib / kLine);
  EXPECT_EQ(simulated_.fills(0), 0U);
}

TEST_F(CachesOfTwoNodes, OneLineMoreThanL1MissesInItsSetOnly) {
  settle_and_count(8 * kKib + kLine);
  EXPECT_EQ(simulated_.l2_hits(0), kRounds * 3);
}

TEST_F(CachesOfTwoNodes, ASetThatFitsIntoL2IsNotFilled) {
  settle_and_count(32 * kKib);
  EXPECT_EQ(simulated_.l2_hits(0), kRounds * 32 * kKib / kLine);
  EXPECT_EQ(simulated_.fills(0), 0U);
}

TEST_F(CachesOfTwoNodes, JustAboveL2TheLinesComeFromTheOwnL3) {
  settle_and_count(40 * kKib);
  EXPECT_EQ(simulated_.l2_hits(0), 0U);
  EXPECT_EQ(simulated_.from_chiplet(0, 0), kRounds * 40 * kKib / kLine);
  EXPECT_EQ(simulated_.fills(0), kRounds * 40 * kKib / kLine);
}

TEST_F(CachesOfTwoNodes, L2AndL3TogetherHoldTheirSum) {
  settle_and_count(160 * kKib);
  EXPECT_EQ(simulated_.from_chiplet(0, 0), kRounds * 160 * kKib / kLine);
  EXPECT_EQ(simulated_.from_memory(0, 0), 0U);
}

TEST_F(CachesOfTwoNodes, AboveThemAllLinesComeFromMemory) {
  settle_and_count(176 * kKib);
  EXPECT_EQ(simulated_.from_chiplet(0, 0), 0U);
  EXPECT_EQ(simulated_.from_memory(0, 0), kRounds * 176 * kKib / kLine);
}

TEST_F(CachesOfTwoNodes, AStrideOfManyLinesUsesFewSets) {
  // 16 lines, all in set 0 of L1 and L2: four fit into the L2's ways, and the L3 holds eight in
  // each of the two sets that they fall into.
  for (int round = 0; round < 3; ++round) {
    for (std::uint64_t at = 0; at < 16; ++at) simulated_.load(0, at * 128 * kLine);
  }
  simulated_.forget();
  for (std::uint64_t at = 0; at < 16; ++at) simulated_.load(0, at * 128 * kLine);
  EXPECT_EQ(simulated_.from_chiplet(0, 0), 16U);
  EXPECT_EQ(simulated_.fills(0), 16U);
}

TEST_F(CachesOfTwoNodes, AStreamIsFilledFromItsHome) {
  simulated_.sweep(0, 0, 4096 * kLine);
  simulated_.sweep(0, kNodeBytes, 4096 * kLine);
  EXPECT_EQ(simulated_.from_memory(0, 0), 4096U);
  EXPECT_EQ(simulated_.from_memory(0, 1), 4096U);
  EXPECT_EQ(simulated_.fills(0), 8192U);
  EXPECT_EQ(simulated_.rows[0][kStalls], 4096U * 60 + 4096U * 80);  // local, of another package
}

TEST_F(CachesOfTwoNodes, WrittenLinesGoBackToTheirHome) {
  constexpr std::uint64_t kLines = 8192, kHeld = 160 * kKib / kLine;
  for (std::uint64_t at = 0; at < kLines; ++at) simulated_.store(0, kNodeBytes + at * kLine);
  EXPECT_EQ(simulated_.written(0, 1), kLines - kHeld);
  EXPECT_EQ(simulated_.written(0, 0), 0U);
}

TEST_F(CachesOfTwoNodes, ACleanStreamWritesNothingBack) {
  simulated_.sweep(0, 0, 8192 * kLine);
  EXPECT_EQ(simulated_.written(0, 0), 0U);
}

TEST_F(CachesOfTwoNodes, MemoryThatNoNodeHasIsNotCounted) {
  EXPECT_EQ(simulated_.load(0, 2 * kNodeBytes), 0U);
  EXPECT_EQ(simulated_.store(0, std::uint64_t{1} << 60), 0U);
  EXPECT_EQ(simulated_.rows[0][kLoads] + simulated_.rows[0][kStores], 0U);
}

TEST_F(CachesOfTwoNodes, AfterClearEverythingComesFromMemory) {
  simulated_.sweep(0, 0, 8 * kKib);
  simulated_.store(1, 0);
  simulated_.caches.clear();
  simulated_.forget();
  simulated_.sweep(0, 0, 8 * kKib);
  EXPECT_EQ(simulated_.from_memory(0, 0), 8 * kKib / kLine);
}

// Two CPUs write to one line in turn: after the first store, each finds the line in the other's
// cache and takes it away.
struct PingPong {
  const char* name;
  unsigned other, chiplet;
  std::uint32_t cycles;
};
class CachesPingPong : public testing::TestWithParam<PingPong> {};

TEST_P(CachesPingPong, EveryStoreTakesTheLineFromTheOther) {
  const PingPong& now = GetParam();
  Simulated simulated(Built{.nodes = 4, .nodes_of_package = 2}.machine());
  constexpr std::uint64_t kTurns = 1000;
  for (std::uint64_t turn = 0; turn < kTurns; ++turn) {
    simulated.store(0, 0);
    simulated.store(now.other, 8);
  }
  EXPECT_EQ(simulated.from_memory(0, 0), 1U);
  EXPECT_EQ(simulated.from_chiplet(0, now.chiplet), kTurns - 1);
  EXPECT_EQ(simulated.from_chiplet(now.other, 0), kTurns);
  EXPECT_EQ(simulated.taken_away(0), kTurns - 1);
  EXPECT_EQ(simulated.taken_away(now.other), kTurns);
  EXPECT_EQ(simulated.fills(0) + simulated.fills(now.other), 2 * kTurns);
  EXPECT_EQ(simulated.rows[now.other][kStalls], kTurns * now.cycles);
}

INSTANTIATE_TEST_SUITE_P(Distances, CachesPingPong,
                         testing::Values(PingPong{"one_chiplet", 1, 0, 20},
                                         PingPong{"two_chiplets", 2, 1, 30},
                                         PingPong{"two_nodes", 4, 2, 40},
                                         PingPong{"two_packages", 8, 4, 50}),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(CachesCoherence, HardwareThreadsOfACoreShareItsCaches) {
  Simulated simulated(Built{.threads = 2}.machine());
  for (int turn = 0; turn < 100; ++turn) {
    simulated.store(0, 0);
    simulated.store(1, 0);
  }
  EXPECT_EQ(simulated.fills(0), 1U);
  EXPECT_EQ(simulated.fills(1), 0U);
  EXPECT_EQ(simulated.taken_away(0) + simulated.taken_away(1), 0U);
}

TEST(CachesCoherence, AStoreTakesEveryCopyAwayAndReadersFetchTheNew) {
  Simulated simulated(Built{}.machine());
  for (unsigned cpu = 0; cpu < 8; ++cpu) simulated.load(cpu, 0);
  simulated.forget();
  EXPECT_EQ(simulated.store(0, 0), 50U);  // as far as the farthest copy
  EXPECT_EQ(simulated.taken_away(0), 7U);
  EXPECT_EQ(simulated.fills(0), 0U);
  simulated.forget();
  for (unsigned cpu = 1; cpu < 8; ++cpu) simulated.load(cpu, 0);
  EXPECT_EQ(simulated.from_chiplet(1, 0), 1U);
  EXPECT_EQ(simulated.from_chiplet(2, 0), 1U);
  EXPECT_EQ(simulated.from_chiplet(3, 1), 1U);  // its neighbour has it by now
  EXPECT_EQ(simulated.from_chiplet(4, 0), 1U);
  EXPECT_EQ(simulated.from_chiplet(5, 2), 1U);
  EXPECT_EQ(simulated.from_chiplet(6, 2), 1U);
  EXPECT_EQ(simulated.from_chiplet(7, 3), 1U);
}

TEST(CachesCoherence, ReadersShareWithoutFillsUntilSomeoneWrites) {
  Simulated simulated(Built{}.machine());
  for (int turn = 0; turn < 100; ++turn) {
    for (unsigned cpu = 0; cpu < 8; ++cpu) simulated.load(cpu, 0);
  }
  for (unsigned cpu = 0; cpu < 8; ++cpu) EXPECT_EQ(simulated.fills(cpu), 1U);
}

TEST(CachesCoherence, AWriterThatWasReadAsksBeforeItWritesAgain) {
  Simulated simulated(Built{}.machine());
  simulated.store(0, 0);
  simulated.load(4, 0);
  simulated.store(0, 0);
  EXPECT_EQ(simulated.taken_away(0), 1U);
  simulated.load(4, 0);
  EXPECT_EQ(simulated.from_chiplet(4, 0), 2U);
}

TEST(CachesCoherence, MemoryOfANodeWithoutCpusIsFar) {
  Simulated simulated(Built{.nodes = 2, .memory_only = 1}.machine());
  simulated.load(0, 2 * kNodeBytes);
  simulated.load(4, 2 * kNodeBytes + kLine);
  EXPECT_EQ(simulated.from_memory(0, 2), 1U);
  EXPECT_EQ(simulated.rows[0][kStalls], 70U);  // node 2 belongs to package 0
  EXPECT_EQ(simulated.rows[4][kStalls], 80U);
}

}  // namespace
}  // namespace atl::cachesim
