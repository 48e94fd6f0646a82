// Threads stay where they are put, wait for each other, and end whatever happens.

#include "threads.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "ask.hpp"

namespace {

using atl::probe::allowed_cpus;
using atl::probe::Fault;
using atl::probe::kAbsentCpu;
using atl::probe::Team;
using atl::probe::ThreadRecord;

TEST(Team, EveryThreadRunsOnItsCpu) {
  const std::vector<int> cpus = allowed_cpus();
  Team team(cpus, 0);
  std::vector<int> seen(cpus.size(), -1);
  team.run([&](std::size_t rank) { seen[rank] = sched_getcpu(); });
  EXPECT_EQ(seen, cpus);
  std::set<pid_t> tids;
  for (std::size_t rank = 0; rank < cpus.size(); ++rank) {
    const ThreadRecord& record = team.records()[rank];
    EXPECT_EQ(record.cpu, cpus[rank]);
    EXPECT_EQ(record.seen_begin, cpus[rank]);
    EXPECT_EQ(record.seen_end, cpus[rank]);
    EXPECT_GE(record.involuntary, 0);
    tids.insert(record.tid);
  }
  EXPECT_EQ(tids.size(), cpus.size());
  EXPECT_FALSE(tids.contains(getpid()));
}

// Plain memory: whoever leaves a barrier early reads what is not there yet (and TSan says so).
TEST(Team, NobodyLeavesABarrierBeforeTheLastIsThere) {
  const std::vector<int> cpus = allowed_cpus();
  Team team(cpus, 0);
  constexpr int kRounds = 200;
  std::vector<int> written(cpus.size(), 0);
  std::atomic<int> wrong{0};
  team.run([&](std::size_t rank) {
    for (int round = 1; round <= kRounds; ++round) {
      written[rank] = round;
      team.barrier();
      for (const int value : written) wrong += value == round ? 0 : 1;
      team.barrier();
    }
  });
  EXPECT_EQ(wrong.load(), 0);
}

TEST(Team, ABodyThatThrowsEndsAllAndIsTold) {
  const std::vector<int> cpus = allowed_cpus();
  Team team(cpus, 0);
  const auto body = [&](std::size_t rank) {
    if (rank == 0) throw std::runtime_error("told");
    for (;;) team.barrier();
  };
  EXPECT_THROW(team.run(body), std::runtime_error);
  // And can be used again.
  std::atomic<std::size_t> ran{0};
  team.run([&](std::size_t) {
    team.barrier();
    ++ran;
  });
  EXPECT_EQ(ran.load(), cpus.size());
}

TEST(Team, ACpuThatIsNotThereIsRefused) {
  EXPECT_THROW(Team({kAbsentCpu}, 0), Fault);
  EXPECT_THROW(Team({allowed_cpus().front(), kAbsentCpu}, 0), Fault);
}

}  // namespace
