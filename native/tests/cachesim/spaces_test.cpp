// What CPUs count is charged to the address space that they ran, and the sums are equal.
#include "cachesim/spaces.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "cachesim/parts.hpp"

namespace atl::cachesim {
namespace {

constexpr std::uint64_t kPage = 4096;

class CachesimSpaces : public testing::Test {
 protected:
  CachesimSpaces() {
    begin(*board_, Built{}.machine());
    spaces_ = std::make_unique<Spaces>(*board_);
  }

  std::uint64_t* user(unsigned cpu) { return board_->row(cpu, kUser); }
  std::uint64_t of(unsigned space, unsigned column, unsigned mode = kUser) {
    return board_->row_of_space(space, mode)[column];
  }

  // Later than all before.
  unsigned charge(unsigned cpu, std::uint64_t root) { return spaces_->charge(cpu, root, ++now_); }

  std::atomic<std::uint64_t> now_{0};
  std::unique_ptr<Board> board_ = std::make_unique<Board>();
  std::unique_ptr<Spaces> spaces_;
};

TEST_F(CachesimSpaces, EachGetsWhatItsCpusCountedMeanwhile) {
  add(user(0)[kLoads], 10);
  const unsigned one = charge(0, kPage);
  add(user(0)[kLoads], 5);
  add(board_->row(0, kKernel)[kStores], 2);
  add(user(3)[kFromChiplet + 1], 7);
  const unsigned two = charge(0, 2 * kPage);
  EXPECT_EQ(charge(3, kPage), one);
  EXPECT_NE(one, two);
  EXPECT_EQ(of(one, kLoads), 10U);
  EXPECT_EQ(of(one, kFromChiplet + 1), 7U);
  EXPECT_EQ(of(two, kLoads), 5U);
  EXPECT_EQ(of(two, kStores, kKernel), 2U);
  EXPECT_EQ(board_->root_of_space[two].load(), 2 * kPage);
  charge(0, kPage);
  EXPECT_EQ(of(one, kLoads), 10U);  // nothing new
}

TEST_F(CachesimSpaces, AnUnknownPageTableTakesNoSpace) {
  add(user(0)[kLoads], 3);
  EXPECT_EQ(charge(0, 0), 0U);
  EXPECT_EQ(of(0, kLoads), 3U);
}

TEST_F(CachesimSpaces, ANewPageTableTakesTheSpaceThatRanLeastRecently) {
  const auto root = [](std::uint64_t number) { return number * 37 * kPage; };
  std::set<unsigned> seen;
  for (std::uint64_t number = 1; number < kSpaces; ++number) seen.insert(charge(0, root(number)));
  EXPECT_EQ(seen.size(), kSpaces - 1U);
  EXPECT_FALSE(seen.contains(0));
  const unsigned first = charge(0, root(1)), second = charge(1, root(2)),
                 third = charge(0, root(3));
  add(user(0)[kLoads], 3);
  charge(0, root(1));  // so the fourth is the oldest
  add(user(0)[kLoads], 4);
  const unsigned taken = charge(0, 99'999 * kPage);
  EXPECT_FALSE(std::set({0U, first, second, third}).contains(taken));
  EXPECT_EQ(board_->root_of_space[taken].load(), 99'999 * kPage);
  EXPECT_EQ(of(taken, kLoads), 4U);
  EXPECT_EQ(charge(1, 99'999 * kPage), taken);
  EXPECT_EQ(charge(1, root(2)), second);
  // One that lost its space takes another.
  const unsigned again = charge(0, root(4));
  EXPECT_NE(again, taken);
  EXPECT_EQ(charge(0, root(1)), first);
  EXPECT_EQ(of(0, kLoads), 0U);
}

// More processes than spaces.
TEST_F(CachesimSpaces, TheSumsAreTheCpusUnderThreads) {
  constexpr unsigned kProcesses = 300;
  std::vector<std::thread> threads;
  for (unsigned cpu = 0; cpu < board_->cpus; ++cpu) {
    threads.emplace_back([this, cpu] {
      std::mt19937 random(cpu);
      for (int turn = 0; turn < 2000; ++turn) {
        for (unsigned column = 0; column < kColumns; ++column) {
          if (random() % 4 == 0) add(board_->row(cpu, random() % kModes)[column], random() % 100);
        }
        charge(cpu, (1 + random() % kProcesses) * kPage);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (unsigned mode = 0; mode < kModes; ++mode) {
    for (unsigned column = 0; column < kColumns; ++column) {
      std::uint64_t cpus = 0, spaces = 0;
      for (unsigned cpu = 0; cpu < board_->cpus; ++cpu) cpus += board_->row(cpu, mode)[column];
      for (unsigned space = 0; space < kSpaces; ++space) spaces += of(space, column, mode);
      EXPECT_EQ(spaces, cpus) << column;
    }
  }
}

}  // namespace
}  // namespace atl::cachesim
