// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-or-later
#include "cachesim/guest_time.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace atl::cachesim {
namespace {

constexpr std::int64_t kMs = 1'000'000;
constexpr std::uint64_t kMhz = 2000;

TEST(GuestTime, IsTheHostsUntilCpusRun) {
  GuestTime time;
  EXPECT_EQ(time.at(700 * kMs, 0, 1, false), 700 * kMs);
  EXPECT_EQ(time.at(710 * kMs, 0, kMhz, false), 710 * kMs);
}

TEST(GuestTime, GoesByAsCyclesWhileCpusRun) {
  GuestTime time;
  time.at(700 * kMs, 0, 1, false);
  // A second of the host, two million cycles.
  EXPECT_EQ(time.at(1700 * kMs, 2'000'000, kMhz, true), 701 * kMs);
  // Then idle for a second: the host's again, and what ran before is not counted twice.
  EXPECT_EQ(time.at(2700 * kMs, 2'000'000, kMhz, false), 1701 * kMs);
  EXPECT_EQ(time.at(2800 * kMs, 4'000'000, kMhz, true), 1702 * kMs);
}

TEST(GuestTime, NeverGoesBack) {
  GuestTime time;
  time.at(700 * kMs, 0, 1, false);
  const std::int64_t late = time.at(900 * kMs, 4'000'000, kMhz, true);
  EXPECT_EQ(time.at(800 * kMs, 2'000'000, kMhz, true), late);
  EXPECT_EQ(time.at(800 * kMs, 2'000'000, kMhz, false), late);
}

TEST(GuestTime, DoesNotStandStillWhenNoCpuGetsOn) {
  GuestTime time;
  time.at(700 * kMs, 0, 1, false);
  const std::int64_t ran = time.at(710 * kMs, 2'000'000, kMhz, true);
  std::int64_t host = 710 * kMs;
  while (host < 710 * kMs + GuestTime::kLongest) {
    host += 10 * kMs;
    EXPECT_EQ(time.at(host, 2'000'000, kMhz, true), ran);
  }
  EXPECT_EQ(time.at(host + 10 * kMs, 2'000'000, kMhz, true), ran + 10 * kMs);
  EXPECT_EQ(time.at(host + 30 * kMs, 2'000'000, kMhz, true), ran + 30 * kMs);
  // What the host gave is not given again by the cycles of that time; those after it count.
  EXPECT_EQ(time.at(host + 90 * kMs, 4'000'000, kMhz, true), ran + 30 * kMs);
  EXPECT_EQ(time.at(host + 100 * kMs, 6'000'000, kMhz, true), ran + 31 * kMs);
}

TEST(GuestTime, OfManyThreadsAddsUpOnce) {
  GuestTime time;
  std::vector<std::thread> threads;
  for (int number = 0; number < 4; ++number) {
    threads.emplace_back([&] {
      for (std::int64_t step = 1; step <= 1000; ++step) {
        time.at(step * kMs, static_cast<std::uint64_t>(step) * 1000, kMhz, step % 2 == 0);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(time.at(1000 * kMs, 1'000'000, kMhz, false), 1000 * kMs);
}

}  // namespace
}  // namespace atl::cachesim
