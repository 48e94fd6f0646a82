// Every scheduler keeps what the kernels ask of a team (team.hpp).

#include "team.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "kernels/graphs.hpp"
#include "teams/teams.hpp"
#include "workload.hpp"

namespace atl::kernels {
namespace {

constexpr int kWorkers[] = {1, 2, 5};

TEST(KernelLines, AreThoseOfTheTimedPartOfEachRun) {
  std::uint64_t got = 0;
  Conditions conditions{.memory = {}, .runs = 2};
  conditions.lines = [&got] {
    Lines lines{.counted_by = "simulated", .chiplets = 3};
    lines.from[0] = got;
    return lines;
  };
  const auto gets = [&](std::uint64_t lines) { return [&got, lines](int) { got += lines; }; };
  time_runs(conditions, gets(1), gets(10), gets(100));
  ASSERT_EQ(conditions.fills.size(), 2U);
  for (const Lines& lines : conditions.fills) {
    EXPECT_EQ(lines.from[0], 10U);
    EXPECT_EQ(lines.from[1], std::nullopt);
    EXPECT_EQ(lines.chiplets, 3);
  }
}

class KernelTeams : public testing::TestWithParam<std::string> {
 protected:
  template <class Test>
  void with_each_size(Test&& test) {
    for (const int workers : kWorkers) {
      const auto team = make_team({.scheduler = GetParam(), .workers = workers, .approach = ""});
      ASSERT_EQ(team->workers(), workers);
      team->run([&] { test(*team); });
    }
  }
};

TEST_P(KernelTeams, ALoopCoversEachItemOnceInPiecesOfAboutTheGrain) {
  with_each_size([](Team& team) {
    for (const std::size_t items : {0U, 1U, 3U, 1'000U}) {
      for (const std::size_t grain : {0U, 1U, 7U, 5'000U}) {
        std::vector<std::atomic<int>> seen(items);
        team.loop(items, grain, [&](std::size_t first, std::size_t last) {
          EXPECT_LT(first, last);
          EXPECT_TRUE(last == items || 2 * (last - first) >= grain) << first << " " << last;
          for (std::size_t at = first; at < last; ++at) ++seen[at];
        });
        for (const auto& count : seen) ASSERT_EQ(count, 1);
      }
    }
  });
}

TEST_P(KernelTeams, EachRankWorksOnce) {
  with_each_size([](Team& team) {
    for (int round = 0; round < 20; ++round) {
      std::vector<std::atomic<int>> seen(static_cast<std::size_t>(team.workers()));
      team.each([&](int rank) { ++seen.at(static_cast<std::size_t>(rank)); });
      for (const auto& count : seen) ASSERT_EQ(count, 1);
    }
  });
}

TEST_P(KernelTeams, NoTwoAtATimeHaveOneRank) {
  with_each_size([](Team& team) {
    std::vector<std::atomic<bool>> taken(static_cast<std::size_t>(team.workers()));
    const auto take = [&] {
      const int rank = team.rank();
      auto& own = taken.at(static_cast<std::size_t>(rank));
      EXPECT_FALSE(own.exchange(true)) << rank;
      std::this_thread::yield();
      EXPECT_EQ(team.rank(), rank);
      own = false;
    };
    team.loop(500, 1, [&](std::size_t, std::size_t) { take(); });
    team.each([&](int) { take(); });
  });
}

TEST_P(KernelTeams, WhatABodyThrowsIsThrownOnceAllHaveLeft) {
  with_each_size([](Team& team) {
    for (int round = 0; round < 20; ++round) {
      std::atomic<int> inside{0};
      const auto body = [&](bool throws) {
        ++inside;
        std::this_thread::yield();
        --inside;
        if (throws) throw std::runtime_error("the first of all fails");
      };
      EXPECT_THROW(team.loop(100, 1, [&](std::size_t first, std::size_t) { body(first == 0); }),
                   std::runtime_error);
      EXPECT_EQ(inside, 0);
      EXPECT_THROW(team.each([&](int rank) { body(rank == 0); }), std::runtime_error);
      EXPECT_EQ(inside, 0);
    }
    std::atomic<std::size_t> seen{0};
    team.loop(10, 0, [&](std::size_t first, std::size_t last) { seen += last - first; });
    EXPECT_EQ(seen, 10U);
  });
}

TEST_P(KernelTeams, EachRankHasItsNode) {
  with_each_size([](Team& team) {
    const NodeMap map = team.nodes();
    EXPECT_EQ(map.node_of_rank.size(), static_cast<std::size_t>(team.workers()));
    for (const int node : map.node_of_rank) {
      EXPECT_NE(std::find(map.nodes.begin(), map.nodes.end(), node), map.nodes.end()) << node;
    }
  });
}

INSTANTIATE_TEST_SUITE_P(, KernelTeams, testing::ValuesIn(schedulers()), [](const auto& one) {
  std::string name = one.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

TEST(KernelTeam, AnEvenShareOfTheRanksIsOnEachNode) {
  using Nodes = std::vector<int>;
  EXPECT_EQ(spread_over_nodes(4, {0, 2}).node_of_rank, (Nodes{0, 0, 2, 2}));
  EXPECT_EQ(spread_over_nodes(5, {0, 2}).node_of_rank, (Nodes{0, 0, 0, 2, 2}));
  EXPECT_EQ(spread_over_nodes(1, {0, 2}).node_of_rank, (Nodes{0}));
  EXPECT_EQ(spread_over_nodes(3, {7}).node_of_rank, (Nodes{7, 7, 7}));
  EXPECT_EQ(spread_over_nodes(2, {0, 1, 2, 3}).node_of_rank, (Nodes{0, 2}));
  EXPECT_EQ(spread_over_nodes(2, {0, 1, 2, 3}).nodes, (Nodes{0, 1, 2, 3}));
}

TEST(KernelTeam, WhatASchedulerCannotDoIsRefused) {
  EXPECT_THROW((void)make_team({.scheduler = "cilk", .workers = 1, .approach = ""}), UsageFault);
  EXPECT_THROW((void)make_team({.scheduler = "os", .workers = 1, .approach = "static:1"}),
               UsageFault);
  EXPECT_THROW((void)make_team({.scheduler = "atoll", .workers = 1, .approach = "near"}),
               UsageFault);
  EXPECT_THROW((void)make_team({.scheduler = "atoll", .workers = 1, .approach = "static:1000"}),
               UsageFault);
}

}  // namespace
}  // namespace atl::kernels
