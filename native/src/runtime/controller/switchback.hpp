// Steers without counters: tries one chiplet more or less, and moves only if the work done per busy
// second shows that it pays.
//
// A trial compares the current spread (home) with its neighbour in blocks of four measured
// intervals, ABBA or BAAB: a switchback experiment (Brandt 1938; Bojinov, Simchi-Levi and Zhao,
// "Design and Analysis of Switchback Experiments", 2023). A linear drift cancels within a block. An
// unmeasured interval precedes each arm, while caches adapt. A seeded coin chooses the outer arm,
// and both orders take the same time: so if the spread makes no difference, the sign of each
// block's result is a coin toss whatever the noise is like (drift, period, autocorrelation, heavy
// tails), and the sign-flip test is exact.
//
// Error rate: up to three looks, after 6, 9 and 12 blocks, each at 1/64: if the spread makes no
// difference, a trial moves the group with probability at most 3/64 (4.7 %). Giving up a trial
// early only lowers it. The mean gain must also be at least 1 %, or it is not worth the migration.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "atoll/runtime/controller.hpp"
#include "shift.hpp"
#include "throughput.hpp"

namespace atl::runtime {

inline constexpr double kTrialErrorRate = 3.0 / 64;

class Switchback final : public Approach {
 public:
  explicit Switchback(std::uint64_t seed = 1) : coin_(seed) {}
  std::string name() const override { return "switchback"; }
  bool needs_intervals() const override { return true; }

  // For tests and traces.
  struct Counts {
    int trials = 0;  // that ended with a verdict
    int moves = 0;   // of them for the neighbour
  };
  const Counts& counts() const { return counts_; }

 protected:
  Decision decide(const Sample& sample) override;

 private:
  enum class Verdict { open, better, no_better, cannot_tell };
  enum Arm { kHome = 0, kNeighbour = 1 };

  Decision rest(const Sample& sample);
  Decision measure(const Sample& sample);
  Decision next_trial(const Sample& sample, const std::string& why);
  void forget_failures();
  Decision begin_rest(const std::string& why);
  Decision next_block(const std::string& why);
  Decision ask(int spread, const std::string& why);
  Decision conclude(const Sample& sample, Verdict verdict);
  Verdict verdict() const;
  bool toss();
  int spread_of(Arm arm) const { return arm == kHome ? home_ : home_ + direction_; }

  std::uint64_t coin_;
  Counts counts_;
  int home_ = 0;       // the spread that is best so far
  int asked_ = 0;      // the spread last asked for; 0 before the first sample
  int direction_ = 1;  // of the neighbour under trial, or of the next one
  // Whether a neighbour is worth a trial before the next rest: below, above.
  std::array<bool, 2> open_ = {true, true};
  bool trying_ = false;
  // At rest.
  int rest_left_ = 0;
  int rest_length_ = 0;
  Shift shift_;
  // In a trial.
  std::array<Arm, 4> arms_ = {};
  std::size_t slot_ = 0;
  int arm_length_ = 0;  // intervals measured in an arm
  int in_arm_ = 0;      // of them done
  bool settling_ = false;
  std::array<Ledger, 2> done_;       // by arm, of this block
  std::vector<double> differences_;  // log speedup of the neighbour, by block
  int void_blocks_ = 0;
};

}  // namespace atl::runtime
