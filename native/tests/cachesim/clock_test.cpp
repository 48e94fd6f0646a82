// CPUs keep within a quantum of each other, and none waits for one that is idle or stuck.
#include "cachesim/clock.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace atl::cachesim {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kQuantum = 100;
constexpr auto kForever = 100s;  // longer than any wait of a working clock

TEST(Clock, RunningCpusStayWithinAQuantum) {
  constexpr unsigned kCpus = 4;
  constexpr std::uint64_t kStep = 7, kSteps = 3000;
  Clock clock(kCpus, kQuantum, kForever);
  for (unsigned cpu = 0; cpu < kCpus; ++cpu) clock.resume(cpu);
  std::atomic<std::uint64_t> farthest{0};
  std::vector<std::thread> threads;
  for (unsigned cpu = 0; cpu < kCpus; ++cpu) {
    threads.emplace_back([&, cpu] {
      for (std::uint64_t step = 0; step < kSteps; ++step) {
        EXPECT_TRUE(clock.spend(cpu, kStep));
        const std::uint64_t mine = clock.cycles(cpu);
        for (unsigned other = 0; other < kCpus; ++other) {
          const std::uint64_t theirs = clock.cycles(other);
          if (theirs >= mine) continue;
          std::uint64_t seen = farthest.load();
          while (seen < mine - theirs && !farthest.compare_exchange_weak(seen, mine - theirs)) {
          }
        }
      }
      clock.idle(cpu);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (unsigned cpu = 0; cpu < kCpus; ++cpu) EXPECT_EQ(clock.cycles(cpu), kStep * kSteps);
  EXPECT_LT(farthest.load(), kQuantum + kStep);
}

TEST(Clock, NobodyWaitsForAnIdleCpu) {
  Clock clock(2, kQuantum, kForever);
  clock.resume(0);
  clock.resume(1);
  clock.idle(1);
  for (int step = 0; step < 100; ++step) EXPECT_TRUE(clock.spend(0, kQuantum));
  EXPECT_EQ(clock.cycles(0), 100 * kQuantum);
}

TEST(Clock, ACpuThatBecomesIdleReleasesWhoWaits) {
  Clock clock(2, kQuantum, kForever);
  clock.resume(0);
  clock.resume(1);
  std::thread waits([&] { EXPECT_TRUE(clock.spend(0, 3 * kQuantum)); });
  while (clock.cycles(0) == 0) std::this_thread::yield();
  clock.idle(1);
  waits.join();
}

TEST(Clock, LetGoReleasesWhoWaitsUntilTheStop) {
  Clock clock(2, kQuantum, kForever);
  clock.resume(1);
  std::thread waits([&] { EXPECT_TRUE(clock.spend(0, 3 * kQuantum)); });
  while (clock.cycles(0) == 0) std::this_thread::yield();
  clock.let_go();
  waits.join();
  EXPECT_TRUE(clock.spend(0, 3 * kQuantum));
  clock.stop();
  clock.resume(1);
  std::thread waits_again([&] { EXPECT_TRUE(clock.spend(0, 3 * kQuantum)); });
  while (clock.cycles(0) < 9 * kQuantum) std::this_thread::yield();
  clock.idle(1);
  waits_again.join();
}

TEST(Clock, ACpuThatComesBackContinuesAtTheOthersTime) {
  Clock clock(2, kQuantum, kForever);
  clock.resume(0);
  for (int step = 0; step < 50; ++step) clock.spend(0, kQuantum);
  clock.resume(1);
  EXPECT_EQ(clock.cycles(1), 50 * kQuantum);
}

// Else the guest's time, which is the furthest's, stands still until the others have come to it.
TEST(Clock, AfterAStopAllContinueWhereTheFurthestWas) {
  Clock clock(2, kQuantum, kForever);
  clock.resume(0);
  clock.resume(1);
  clock.let_go();
  EXPECT_TRUE(clock.spend(0, 50 * kQuantum + 7));
  clock.stop();
  clock.resume(1);
  EXPECT_EQ(clock.cycles(1), 50 * kQuantum);
  EXPECT_EQ(clock.slowest(), 50 * kQuantum);
}

TEST(Clock, ACpuWaitsForAStuckOneOnlySoLong) {
  Clock clock(2, kQuantum, 1000us);
  clock.resume(0);
  clock.resume(1);
  for (int step = 0; step < 3; ++step) EXPECT_FALSE(clock.spend(0, kQuantum));
}

TEST(Clock, ACpuThatSpendsIsNotIdle) {
  Clock clock(2, kQuantum, 1000us);
  EXPECT_TRUE(clock.spend(1, 10));
  EXPECT_FALSE(clock.spend(0, 2 * kQuantum));
  clock.stop();
  EXPECT_TRUE(clock.spend(0, 2 * kQuantum));
}

}  // namespace
}  // namespace atl::cachesim
