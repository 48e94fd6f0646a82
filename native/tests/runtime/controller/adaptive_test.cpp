// The default approach with counters, on simulated jobs and on samples made by hand.

#include "controller/adaptive.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "atoll/runtime/controller.hpp"
#include "controller/arcas_2025.hpp"
#include "controller/switchback.hpp"
#include "simulation.hpp"

namespace {

using namespace atl::simulation;
using atl::Sample;
using atl::runtime::Adaptive;
using atl::runtime::Arcas2025;
using atl::runtime::Switchback;

constexpr bool kCounters = true;
const Machine kMachine;

Trace run(atl::Approach& approach, const Job& job, int start, int intervals,
          std::uint64_t seed = 1) {
  return simulate(approach, kMachine, job, kCounters, intervals, start, seed);
}

// What the tests below rest on.
TEST(Model, HasTheOptimaThatTheJobsAreNamedFor) {
  const auto best = [](const Job& job) {
    int found = 1;
    for (int spread = 2; spread <= kMachine.chiplets; ++spread) {
      const Phase& phase = job.phases.front();
      if (unit_ns(kMachine, phase, spread) < unit_ns(kMachine, phase, found) - 1e-9) found = spread;
    }
    return found;
  };
  EXPECT_EQ(best(sharing_job()), 1);
  EXPECT_EQ(best(capacity_job()), 5);
  EXPECT_EQ(best(mixed_job()), 4);
}

TEST(Adaptive, CompactsASharingJobToTheMinimum) {
  for (int start = 1; start <= 8; ++start) {
    Adaptive adaptive;
    const Trace result = run(adaptive, sharing_job(), start, 1000);
    EXPECT_EQ(result.steps[60].spread, 1) << "from " << start;
    EXPECT_EQ(result.moves(), start - 1) << "straight there, and stays";
  }
}

TEST(Adaptive, SpreadsACapacityJobToWhereTheSetFits) {
  for (int start = 1; start <= 5; ++start) {
    Adaptive adaptive;
    const Trace result = run(adaptive, capacity_job(), start, 1000);
    EXPECT_EQ(result.steps[60].spread, 5) << "from " << start;
    EXPECT_EQ(result.moves(), 5 - start) << "straight there, and stays";
  }
}

TEST(PrintedAlgorithm, AsPrintedDrivesTheSharingJobToTheMostChiplets) {
  for (int start = 2; start <= 8; ++start) {
    Arcas2025 printed;
    const Trace result = run(printed, sharing_job(), start, 100);
    EXPECT_EQ(result.steps.back().spread, 8) << "from " << start;
    EXPECT_GT(result.steps.back().slowdown, 1.5);
  }
}

TEST(PrintedAlgorithm, AsPrintedCompactsTheJobThatNeedsTheCaches) {
  Arcas2025 printed;
  const Trace result = run(printed, capacity_job(), 8, 100);
  EXPECT_EQ(result.steps.back().spread, 1);
  EXPECT_GT(result.steps.back().slowdown, 1.5);
}

TEST(Adaptive, IsWithinFivePercentOfTheBestFromAnywhere) {
  for (const Job& job : {sharing_job(), capacity_job(), mixed_job(), indifferent_job()}) {
    for (int start = 1; start <= 8; ++start) {
      for (std::uint64_t seed = 1; seed <= 5; ++seed) {
        Adaptive adaptive;
        const Trace result = run(adaptive, job, start, 1000, seed);
        EXPECT_LT(result.slowdown(100), 1.05) << job.name << " from " << start << " seed " << seed;
      }
    }
  }
}

TEST(Adaptive, DoesNotOscillateInSteadyState) {
  constexpr int kIntervals = 40'000;
  for (const Job& job : all_jobs()) {
    if (job.phases.size() > 1) continue;
    for (int start = 1; start <= 8; ++start) {
      Adaptive adaptive;
      const Trace result = run(adaptive, job, start, kIntervals);
      // At the longest hold (4096) a look at a neighbour and back: at most two moves each time,
      // and holds of both neighbours.
      EXPECT_LE(result.moves(kIntervals / 2), 4 * (1 + kIntervals / 2 / 4096)) << job.name;
      EXPECT_LT(result.slowdown(kIntervals / 2), 1.005) << job.name << " from " << start;
    }
  }
}

TEST(Adaptive, DoesNotOscillateUnderHeavyNoise) {
  constexpr int kIntervals = 20'000;
  for (Job job : {sharing_job(), capacity_job(), mixed_job()}) {
    job.noise = 0.25;
    job.autocorrelation = 0.8;
    Adaptive adaptive;
    const Trace result = run(adaptive, job, 4, kIntervals);
    EXPECT_LT(result.slowdown(kIntervals / 2), 1.02) << job.name;
    EXPECT_LT(result.moves(kIntervals / 2), kIntervals / 200) << job.name;
  }
}

TEST(Adaptive, FollowsAJobThatChangesItsPhase) {
  Job job = phased_job();
  for (Phase& phase : job.phases) phase.intervals = 300;
  Adaptive adaptive;
  const Trace result = run(adaptive, job, 4, 2400);
  for (std::size_t end = 299; end < result.steps.size(); end += 300) {
    const bool shares = end / 300 % 2 == 0;
    EXPECT_EQ(result.steps[end].spread, shares ? 1 : 5) << "interval " << end;
  }
}

// A group whose fills are made by hand: shares of the busy time by default latencies.
class Made {
 public:
  Sample next(int spread, double memory, double other, double scale = 1) const {
    constexpr double kMemoryNs = 110 - 23;
    constexpr double kOtherNs = 108 - 23;
    const double busy_ns = 1e8 * scale;
    Sample sample{
        .elapsed_s = 0.1, .spread = spread, .min_spread = 1, .max_spread = 8, .threads = 8};
    sample.fills.memory = static_cast<std::uint64_t>(memory * busy_ns / kMemoryNs);
    sample.fills.remote_chiplet = static_cast<std::uint64_t>(other * busy_ns / kOtherNs);
    sample.work = {{.type = 1, .units = 1000, .busy_s = busy_ns / 1e9}};
    return sample;
  }
};

TEST(Adaptive, TakesBackASpreadThatDidNotPayAndHoldsOffForLongerEachTime) {
  Adaptive adaptive;
  std::vector<int> tries;  // intervals at which it went to 2
  int spread = 1;
  for (int interval = 0; interval < 3000; ++interval) {
    // Memory pushes to spread, but on two chiplets it is worse.
    const Sample sample =
        spread == 1 ? Made().next(1, 0.30, 0.05) : Made().next(spread, 0.35, 0.25);
    const int next = adaptive.step(sample).spread;
    ASSERT_LE(next, 2);
    if (spread == 1 && next == 2) tries.push_back(interval);
    spread = next;
  }
  ASSERT_GE(tries.size(), 4U);
  EXPECT_LE(tries.size(), 8U);
  for (std::size_t i = 2; i < tries.size(); ++i) {
    const double gap = tries[i] - tries[i - 1];
    const double before = tries[i - 1] - tries[i - 2];
    EXPECT_GT(gap, 1.7 * before) << "try " << i;
  }
}

TEST(Adaptive, StaysBetweenPushesThatAreAlikeOrSmall) {
  for (const auto& [memory, other] :
       {std::pair{0.30, 0.29}, {0.29, 0.30}, {0.015, 0.0}, {0.0, 0.015}, {0.0, 0.0}}) {
    Adaptive adaptive;
    for (int i = 0; i < 200; ++i) {
      ASSERT_EQ(adaptive.step(Made().next(4, memory, other)).spread, 4) << memory << ' ' << other;
    }
  }
}

TEST(Adaptive, DoesNotDependOnTheSizeOfTheMachine) {
  Adaptive small;
  Adaptive large;
  int spread = 4;
  for (int i = 0; i < 500; ++i) {
    const double memory = 0.8 / spread;
    const double other = 0.03 * spread;
    const int next = small.step(Made().next(spread, memory, other)).spread;
    ASSERT_EQ(large.step(Made().next(spread, memory, other, 64)).spread, next);
    spread = next;
  }
  EXPECT_NE(spread, 4);
}

TEST(Adaptive, AnIdleGroupStays) {
  Adaptive adaptive;
  for (int i = 0; i < 200; ++i) {
    // Ten microseconds of work, all of it stalled.
    ASSERT_EQ(adaptive.step(Made().next(4, 1.0, 0.0, 1e-4)).spread, 4);
  }
}

TEST(Adaptive, MovesNothingWithinTheFirstFourIntervals) {
  Adaptive adaptive;
  for (int i = 0; i < 4; ++i) EXPECT_EQ(adaptive.step(Made().next(4, 0.5, 0.0)).spread, 4) << i;
  EXPECT_EQ(adaptive.step(Made().next(4, 0.5, 0.0)).spread, 5);
}

TEST(Adaptive, WithoutFillsItIsSwitchback) {
  for (const bool half : {false, true}) {  // an Intel CPU may tell memory, but not chiplets
    Adaptive adaptive;
    Switchback switchback;
    Simulation simulation(kMachine, sharing_job(), false, 3);
    int spread = 4;
    int moves = 0;
    for (int i = 0; i < 2000; ++i) {
      Sample sample = simulation.next(spread);
      if (half) sample.fills.memory = 1000;
      const int next = switchback.step(sample).spread;
      ASSERT_EQ(adaptive.step(sample).spread, next);
      moves += next != spread ? 1 : 0;
      spread = next;
    }
    EXPECT_GT(moves, 0);
  }
}

}  // namespace
