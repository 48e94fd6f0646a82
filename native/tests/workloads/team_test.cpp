// Both teams keep what the workloads ask of a team (plain_team.hpp).

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <cstddef>
#include <stdexcept>
#include <system_error>
#include <vector>

#include "atoll_team.hpp"
#include "plain_team.hpp"

namespace atl::workloads {
namespace {

template <class Team>
class Teams : public testing::Test {};
using Both = testing::Types<PlainTeam, AtollTeam>;
TYPED_TEST_SUITE(Teams, Both);

constexpr int kThreads[] = {1, 2, 5};

TYPED_TEST(Teams, LoopsCoverEachItemOnce) {
  for (const int threads : kThreads) {
    TypeParam team(threads);
    EXPECT_EQ(team.threads(), threads);
    team.run([&] {
      for (const std::size_t items : {0U, 1U, 3U, 1'000U}) {
        std::vector<std::atomic<int>> seen(items);
        const auto body = [&](std::size_t first, std::size_t last) {
          ASSERT_LT(first, last);
          for (std::size_t at = first; at < last; ++at) ++seen[at];
        };
        team.shares(items, body);
        for (const auto& count : seen) ASSERT_EQ(count, 1);
        team.pieces(items, 7, body);
        for (const auto& count : seen) ASSERT_EQ(count, 2);
      }
    });
  }
}

TYPED_TEST(Teams, LocalsAreNobodyElsesAndAllAreSeen) {
  for (const int threads : kThreads) {
    TypeParam team(threads);
    team.run([&] {
      typename TypeParam::template Local<long> sums(team, [] { return 1000L; });
      for (int round = 0; round < 3; ++round) {
        team.pieces(500, 1, [&](std::size_t first, std::size_t last) {
          for (; first < last; ++first) *sums.lease() += static_cast<long>(first);
        });
      }
      long all = 0;
      long values = 0;
      sums.for_each([&](long& sum) {
        all += sum;
        ++values;
      });
      EXPECT_GE(values, 1);
      EXPECT_LE(values, threads);
      EXPECT_EQ(all, 3 * 500 * 499 / 2 + 1000 * values);
    });
  }
}

TYPED_TEST(Teams, ALoopThrowsWhatABodyThrowsAndTheTeamGoesOn) {
  TypeParam team(3);
  for (int round = 0; round < 20; ++round) {
    EXPECT_THROW(team.run([&] {
      team.shares(100, [](std::size_t, std::size_t last) {
        if (last == 100) throw std::runtime_error("the last part fails");
      });
    }),
                 std::runtime_error);
  }
  std::atomic<int> seen{0};
  team.run([&] {
    team.shares(
        10, [&](std::size_t first, std::size_t last) { seen += static_cast<int>(last - first); });
  });
  EXPECT_EQ(seen, 10);
}

TYPED_TEST(Teams, AWatchedLoopHasALocalShareHoweverShort) {
  TypeParam team(2);
  const auto loop = [](std::size_t, std::size_t) {};
  team.run([&] {
    team.shares(2, loop);
    EXPECT_EQ(team.local_share(), std::nullopt);
    team.watch();
    team.shares(0, loop);
    EXPECT_EQ(team.local_share(), std::nullopt);
    for (int round = 0; round < 100; ++round) {
      team.shares(2, loop);
      team.pieces(2, 1, loop);
      ASSERT_GE(team.local_share(), several_memory_nodes() ? 0 : 0.999);
      ASSERT_LE(team.local_share(), 1.001);
    }
  });
}

TEST(PlainTeam, ThreadsStayOnTheirCpus) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  std::vector<int> allowed;
  for (int cpu = CPU_SETSIZE - 1; cpu >= 0; --cpu) {
    if (CPU_ISSET(cpu, &before)) allowed.push_back(cpu);
  }
  {
    PlainTeam team(3, allowed);
    team.shares(3, [&](std::size_t first, std::size_t) {
      EXPECT_EQ(sched_getcpu(), allowed[first % allowed.size()]);
    });
  }
  EXPECT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
  EXPECT_THROW(PlainTeam(2, std::vector{allowed.front(), 8191}), std::system_error);
  EXPECT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
}

}  // namespace
}  // namespace atl::workloads
