// Steering by throughput: the test, the comparison of mixes, and the error rate over many seeds.

#include "controller/switchback.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "controller/shift.hpp"
#include "controller/sign_flip.hpp"
#include "controller/throughput.hpp"
#include "simulation.hpp"

namespace {

using namespace atl::simulation;
using atl::Sample;
using atl::TypeWork;
using atl::runtime::kTrialErrorRate;
using atl::runtime::Ledger;
using atl::runtime::log_speedup;
using atl::runtime::Shift;
using atl::runtime::sign_flip_p;
using atl::runtime::Switchback;

constexpr bool kNoCounters = false;
const Machine kSimulated;

double p_of(const std::vector<double>& differences) { return sign_flip_p(differences); }

TEST(SignFlip, CountsTheSumsAtLeastAsLarge) {
  EXPECT_EQ(p_of({}), 1.0);
  EXPECT_EQ(p_of({1}), 1.0 / 2);
  EXPECT_EQ(p_of({1, 1, 1, 1, 1, 1}), 1.0 / 64);
  EXPECT_EQ(p_of({-1, -1, -1}), 1.0);
  EXPECT_EQ(p_of({1, 2, -3}), 5.0 / 8);
  EXPECT_EQ(p_of({0, 0, 0}), 1.0);
}

TEST(SignFlip, AgreesWithACountOverIntegers) {
  // Darwin's maize, eighths of an inch, the first twelve pairs (Fisher, 1935, section 21).
  const std::vector<int> darwin = {49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24};
  int seen = 0;
  std::vector<double> differences;
  for (const int pair : darwin) {
    seen += pair;
    differences.push_back(pair / 8.0);
  }
  // By dynamic programming over the sums, unlike the code under test.
  constexpr int kMiddle = 1000;
  std::vector<int> ways(2 * kMiddle + 1, 0);
  ways[kMiddle] = 1;
  for (const int pair : darwin) {
    std::vector<int> next(ways.size(), 0);
    for (int sum = 0; sum < static_cast<int>(ways.size()); ++sum) {
      if (ways[static_cast<std::size_t>(sum)] == 0) continue;
      next[static_cast<std::size_t>(sum + pair)] += ways[static_cast<std::size_t>(sum)];
      next[static_cast<std::size_t>(sum - pair)] += ways[static_cast<std::size_t>(sum)];
    }
    ways = next;
  }
  int as_large = 0;
  for (int sum = kMiddle + seen; sum < static_cast<int>(ways.size()); ++sum) {
    as_large += ways[static_cast<std::size_t>(sum)];
  }
  EXPECT_EQ(sign_flip_p(differences), as_large / 4096.0);
}

Ledger ledger(const std::vector<TypeWork>& work) {
  Ledger result;
  result.add(work);
  return result;
}

TEST(LogSpeedup, IsNotFooledByAChangingMix) {
  // Type 1 takes 1 s a unit, type 2 10 s, before and after; only the mix turns round.
  const auto difference =
      log_speedup(ledger({{1, 90, 90}, {2, 1, 10}}), ledger({{1, 10, 10}, {2, 9, 90}}));
  ASSERT_TRUE(difference);
  EXPECT_NEAR(*difference, 0, 1e-12);  // though units per second fell from 0.91 to 0.19
}

// Three intervals of a task that takes four: its time is not the other type's gain.
TEST(Throughput, TimeWithoutUnitsIsWorkThatIsNotMatched) {
  Ledger from;
  from.add({{.type = 1, .units = 10, .busy_s = 1}, {.type = 2, .units = 1, .busy_s = 4}});
  Ledger to;
  to.add({{.type = 1, .units = 10, .busy_s = 1}, {.type = 2, .units = 0, .busy_s = 3}});
  EXPECT_FALSE(log_speedup(from, to));
  to.add({{.type = 2, .units = 1, .busy_s = 1}});
  ASSERT_TRUE(log_speedup(from, to));
  EXPECT_NEAR(*log_speedup(from, to), 0, 1e-12);
}

TEST(LogSpeedup, WeighsTypesByTheirBusyTime) {
  const auto difference =
      log_speedup(ledger({{1, 100, 80}, {2, 100, 20}}), ledger({{1, 200, 80}, {2, 100, 20}}));
  ASSERT_TRUE(difference);
  EXPECT_NEAR(*difference, 0.8 * std::log(2), 1e-12);
}

TEST(LogSpeedup, IsTheSameBackwards) {
  const Ledger from = ledger({{1, 10, 3}, {2, 7, 5}, {3, 1, 1}});
  const Ledger to = ledger({{1, 12, 4}, {2, 9, 2}, {4, 1, 1}});
  ASSERT_TRUE(log_speedup(from, to));
  EXPECT_NEAR(*log_speedup(from, to), -*log_speedup(to, from), 1e-12);
}

TEST(LogSpeedup, SaysNothingWhereTheTypesHardlyMeet) {
  EXPECT_FALSE(log_speedup(Ledger(), Ledger()));
  EXPECT_FALSE(log_speedup(ledger({{1, 1, 1}}), ledger({{2, 1, 1}})));
  EXPECT_FALSE(log_speedup(ledger({{1, 1, 1}, {2, 9, 9}}), ledger({{1, 1, 1}})));
  EXPECT_TRUE(log_speedup(ledger({{1, 1, 1}, {2, 1, 1}}), ledger({{1, 1, 1}})));
}

TEST(Ledger, PassesOverWhatIsNoWork) {
  EXPECT_TRUE(ledger({{1, 0, 0}, {2, 1, 0}, {3, NAN, 1}, {4, 1, INFINITY}, {5, -1, 1}}).empty());
}

TEST(Shift, SeesAJumpAndStaysQuietWithoutOne) {
  int quiet_alarms = 0;
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    Simulation simulation(kSimulated, indifferent_job(), kNoCounters, seed);
    Shift shift;
    bool alarmed = false;
    for (int i = 0; i < 200; ++i) alarmed = shift.watch(simulation.next(4).work);
    quiet_alarms += alarmed ? 1 : 0;
    shift.restart();
    for (int i = 0; i < 16; ++i) ASSERT_FALSE(shift.watch(simulation.next(4).work));
    bool seen = false;
    for (int i = 0; i < 20; ++i) {
      std::vector<TypeWork> work = simulation.next(4).work;
      for (TypeWork& entry : work) entry.units *= 1.25;
      seen = shift.watch(work);
    }
    EXPECT_TRUE(seen) << "seed " << seed;
  }
  EXPECT_LE(quiet_alarms, 3);  // of 50; 200 intervals each
}

TEST(Shift, OtherTaskTypesAreAShift) {
  Shift shift;
  for (int i = 0; i < 30; ++i) ASSERT_FALSE(shift.watch({{1, 100, 1}}));
  bool seen = false;
  for (int i = 0; i < 10; ++i) seen = shift.watch({{2, 100, 1}});
  EXPECT_TRUE(seen);
}

// Whether the first trial of a run moves the group.
bool first_trial_moves(const Job& job, int start, std::uint64_t seed) {
  Switchback switchback(seed);
  Simulation simulation(kSimulated, job, kNoCounters, seed + 1'000'000);
  int spread = start;
  while (switchback.counts().trials == 0) spread = switchback.step(simulation.next(spread)).spread;
  return switchback.counts().moves == 1;
}

int moves_of(const Job& job, int start, int runs) {
  int moves = 0;
  for (int seed = 1; seed <= runs; ++seed) {
    moves += first_trial_moves(job, start, static_cast<std::uint64_t>(seed)) ? 1 : 0;
  }
  return moves;
}

// The count that a binomial of this rate exceeds with probability under 1e-4 (normal, 3.72).
double binomial_bound(int runs, double rate) {
  return runs * rate + 3.72 * std::sqrt(runs * rate * (1 - rate));
}

TEST(Switchback, MovesAGroupThatDoesNotCareNoMoreOftenThanStated) {
  constexpr int kRuns = 1500;
  std::vector<Job> jobs;
  for (const double noise : {0.02, 0.05, 0.3}) {
    for (const double autocorrelation : {0.0, 0.9}) {
      for (const double drift : {0.0, 0.3}) {
        Job job = indifferent_job();
        // A second type, ten times as expensive, so that a drifting mix could mislead.
        job.phases[0].types.push_back({.share = 0.1, .compute_ns = 10'000, .own = 4});
        job.noise = noise;
        job.autocorrelation = autocorrelation;
        job.mix_drift = drift;
        jobs.push_back(job);
      }
    }
  }
  for (const Job& job : jobs) {
    EXPECT_LE(moves_of(job, 4, kRuns), binomial_bound(kRuns, kTrialErrorRate))
        << "noise " << job.noise << ", autocorrelation " << job.autocorrelation << ", drift "
        << job.mix_drift;
  }
}

// A disturbance with the period of a block, which any fixed order of arms would take for an effect.
TEST(Switchback, IsNotFooledByAPeriod) {
  constexpr int kRuns = 1500;
  for (const int phase : {0, 2, 5}) {
    int moves = 0;
    for (int seed = 1; seed <= kRuns; ++seed) {
      Switchback switchback(static_cast<std::uint64_t>(seed));
      int spread = 4;
      for (int i = 0; switchback.counts().trials == 0; ++i) {
        const int place = (i + phase) % 7;
        const double speed = place == 2 || place == 3 ? 1.2 : 1.0;
        const Sample sample{.elapsed_s = 0.1,
                            .spread = spread,
                            .min_spread = 1,
                            .max_spread = 8,
                            .threads = 8,
                            .work = {{1, 1000 * speed, 0.8}}};
        spread = switchback.step(sample).spread;
      }
      moves += switchback.counts().moves;
    }
    EXPECT_LE(moves, binomial_bound(kRuns, kTrialErrorRate)) << "phase " << phase;
  }
}

TEST(Switchback, SeesAGainOfTwiceTheNoise) {
  // From one chiplet to two the capacity job gains more than a tenth; noise is 5 %.
  const Phase phase = capacity_job().phases.front();
  ASSERT_GT(unit_ns(kSimulated, phase, 1) / unit_ns(kSimulated, phase, 2), 1.1);
  constexpr int kRuns = 300;
  EXPECT_GE(moves_of(capacity_job(), 1, kRuns), kRuns * 9 / 10);
}

// The first trial of a group at 4 without noise, whose neighbours have this speed and whose first
// interval after a move has a third of it.
struct FirstTrial {
  int intervals = 0;  // from the end of the rest to the verdict
  int away = 0;       // of them at the neighbour
  bool moved = false;
};

FirstTrial first_trial(double neighbour_speed, std::uint64_t seed) {
  Switchback switchback(seed);
  FirstTrial result;
  int spread = 4;
  int before = 4;
  for (int i = 0; switchback.counts().trials == 0; ++i) {
    const double speed = (spread == 4 ? 1.0 : neighbour_speed) * (spread == before ? 1.0 : 1.0 / 3);
    const Sample sample{.elapsed_s = 0.1,
                        .spread = spread,
                        .min_spread = 1,
                        .max_spread = 8,
                        .threads = 8,
                        .work = {{1, 1000 * speed, 0.8}}};
    before = spread;
    spread = switchback.step(sample).spread;
    result.away += before != 4 ? 1 : 0;
    result.intervals = i + 1 - 18;  // the first sample, one that settles, a rest of 16
  }
  result.moved = switchback.counts().moves == 1;
  return result;
}

TEST(Switchback, TheFirstIntervalAfterAMoveDoesNotCount) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    const FirstTrial trial = first_trial(1.05, seed);
    EXPECT_TRUE(trial.moved) << "seed " << seed;
    EXPECT_EQ(trial.intervals, 6 * 7) << "six blocks of four measured intervals and three others";
  }
}

TEST(Switchback, AGainThatIsNotWorthAMoveIsNone) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) EXPECT_FALSE(first_trial(1.009, seed).moved);
}

TEST(Switchback, GivesUpAfterTwoBlocksBehind) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    EXPECT_EQ(first_trial(0.98, seed).intervals, 2 * 7) << "seed " << seed;
  }
}

TEST(Switchback, LeavesANeighbourThatHarmsAtOnce) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    EXPECT_LE(first_trial(0.8, seed).away, 2) << "seed " << seed;
  }
}

TEST(Switchback, FindsTheOptimumWithinFivePercent) {
  for (const Job& job : {sharing_job(), capacity_job(), mixed_job()}) {
    for (const int start : {1, 4, 8}) {
      for (std::uint64_t seed = 1; seed <= 5; ++seed) {
        Switchback switchback(seed);
        const Trace run = simulate(switchback, kSimulated, job, kNoCounters, 12'000, start, seed);
        EXPECT_LT(run.slowdown(8'000), 1.05) << job.name << " from " << start << " seed " << seed;
      }
    }
  }
}

TEST(Switchback, RestsForLongerAndLongerWhereNothingPays) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    Switchback switchback(seed);
    Simulation simulation(kSimulated, indifferent_job(), kNoCounters, seed);
    int spread = 4;
    int trials_half = 0;
    int moves_of_threads = 0;
    for (int i = 0; i < 80'000; ++i) {
      if (i == 40'000) trials_half = switchback.counts().trials;
      const int next = switchback.step(simulation.next(spread)).spread;
      if (i >= 40'000 && next != spread) ++moves_of_threads;
      spread = next;
    }
    EXPECT_LE(switchback.counts().trials - trials_half, 60) << "seed " << seed;
    EXPECT_LT(moves_of_threads, 800) << "seed " << seed;  // 2 % of the intervals
  }
}

TEST(Switchback, TriesAgainWhenThroughputShifts) {
  Job job = phased_job();
  for (Phase& phase : job.phases) phase.intervals = 6000;
  for (const int start : {1, 4}) {
    Switchback switchback;
    const Trace run = simulate(switchback, kSimulated, job, kNoCounters, 12'000, start, 1);
    EXPECT_LT(run.slowdown(11'000), 1.05) << "from " << start;
    // It could not have come there within 1500 intervals had it slept through its longest rest.
    EXPECT_LT(run.steps[7500].slowdown, 1.3) << "from " << start;
  }
}

TEST(Switchback, AGroupWithoutWorkStays) {
  Switchback switchback;
  for (int i = 0; i < 1000; ++i) {
    const Sample sample{
        .elapsed_s = 0.1, .spread = 4, .min_spread = 1, .max_spread = 8, .threads = 8};
    ASSERT_EQ(switchback.step(sample).spread, 4);
  }
  EXPECT_EQ(switchback.counts().trials, 0);
}

TEST(Switchback, GroupsOfDifferentSeedsDoNotKeepStep) {
  const auto first = atl::approach_by_name("switchback", 1);
  const auto second = atl::approach_by_name("switchback", 2);
  Simulation simulation(kSimulated, indifferent_job(), kNoCounters, 1);
  int apart = 0;
  int one = 4;
  int two = 4;
  for (int i = 0; i < 200; ++i) {
    Sample sample = simulation.next(4);
    sample.spread = one;
    one = first->step(sample).spread;
    sample.spread = two;
    two = second->step(sample).spread;
    apart += one != two ? 1 : 0;
  }
  EXPECT_GT(apart, 10);
}

TEST(Switchback, AsksForNothingElseAfterSomebodyMovedTheGroup) {
  Switchback switchback;
  Simulation simulation(kSimulated, indifferent_job(), kNoCounters, 1);
  int spread = 4;
  for (int i = 0; i < 40; ++i) spread = switchback.step(simulation.next(spread)).spread;
  for (int i = 0; i < 10; ++i) EXPECT_EQ(switchback.step(simulation.next(7)).spread, 7);
}

}  // namespace
