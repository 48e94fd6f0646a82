#include "switchback.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "sign_flip.hpp"

namespace atl::runtime {

namespace {

// In intervals. The first is as long as the reference of Shift. At the longest, a group that gains
// from no spread is on trial for less than a tenth of the time (two trials of the longest arms take
// about 600 intervals on average), and one that any move harms for 1 %.
constexpr int kFirstRest = 16;
constexpr int kLongestRest = 8192;
// Intervals of an arm: the shortest detect a gain well above the noise at once; each rest doubles
// them, since an undecided trial needs more, not the same again. At the longest, white noise of 5 %
// an interval is 1.3 % in a block.
constexpr int kShortestArm = 1;
constexpr int kLongestArm = 16;

constexpr std::size_t kLooks[] = {6, 9, 12};
static_assert(kLooks[2] <= kMostDifferences);
constexpr double kLookErrorRate = kTrialErrorRate / 3;
// Six blocks are the fewest that can reach it (2^-6), and that is the first look.
static_assert(kLookErrorRate == 1.0 / 64);
// A trial that is behind after two blocks is given up: that ends half of the trials of a group that
// gains nothing, and 8 % of those for a gain as large as a block's noise (they come again after the
// rest).
constexpr std::size_t kFirstGiveUp = 2;
// A neighbour that is 10 % slower is left at the end of the arm. Like every way to stop early, it
// can only keep the group at home.
constexpr double kHarm = 0.105;         // -log(0.9)
constexpr double kLeastGain = 0.00995;  // log(1.01)
// Blocks in which the arms had no task types in common.
constexpr int kMostVoidBlocks = 3;

}  // namespace

// SplitMix64 (Steele, Lea, Flood 2014): eight bytes of state for a coin.
bool Switchback::toss() {
  coin_ += 0x9e3779b97f4a7c15;
  std::uint64_t bits = coin_;
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111eb;
  return (bits >> 63) != 0;
}

Decision Switchback::ask(int spread, const std::string& why) {
  asked_ = spread;
  return {spread, why};
}

Decision Switchback::decide(const Sample& sample) {
  if (sample.spread != asked_) {
    // The first sample, somebody else moved the group, or the bounds cut off what was asked for:
    // what was measured is of another place.
    home_ = sample.spread;
    forget_failures();
    return begin_rest("switchback: rests first");
  }
  return trying_ ? measure(sample) : rest(sample);
}

Decision Switchback::rest(const Sample& sample) {
  if (settling_) {
    settling_ = false;
    return ask(home_, "switchback: settled");
  }
  const bool idle = std::none_of(sample.work.begin(), sample.work.end(),
                                 [](const TypeWork& entry) { return entry.units > 0; });
  if (idle) return ask(home_, "switchback: no work to measure by");
  open_ = {true, true};
  if (shift_.watch(sample.work)) {
    forget_failures();
    return next_trial(sample, "switchback: throughput has shifted, tries again");
  }
  if (--rest_left_ > 0) return ask(home_, "switchback: rests");
  return next_trial(sample, "switchback: tries a neighbour");
}

// Tries what is still open, the old direction first. Where nothing is, rests; the rest after the
// next trials will be twice as long, and so will be their arms.
Decision Switchback::next_trial(const Sample& sample, const std::string& why) {
  for (const int direction : {direction_, -direction_}) {
    const int neighbour = home_ + direction;
    if (!open_[direction > 0] || neighbour < sample.min_spread || neighbour > sample.max_spread) {
      continue;
    }
    direction_ = direction;
    trying_ = true;
    differences_.clear();
    void_blocks_ = 0;
    return next_block(why);
  }
  const Decision decision = begin_rest(why);
  rest_length_ = std::min(2 * rest_length_, kLongestRest);
  arm_length_ = std::min(2 * arm_length_, kLongestArm);
  return decision;
}

void Switchback::forget_failures() {
  rest_length_ = kFirstRest;
  arm_length_ = kShortestArm;
}

Decision Switchback::begin_rest(const std::string& why) {
  trying_ = false;
  settling_ = true;
  rest_left_ = rest_length_;
  shift_.restart();
  return ask(home_, why);
}

Decision Switchback::next_block(const std::string& why) {
  const Arm outer = toss() ? kHome : kNeighbour;
  const Arm inner = outer == kHome ? kNeighbour : kHome;
  arms_ = {outer, inner, inner, outer};
  slot_ = 0;
  in_arm_ = 0;
  done_[kHome].clear();
  done_[kNeighbour].clear();
  // Also where the group already is at the outer arm: both orders must take the same time.
  settling_ = true;
  return ask(spread_of(outer), why);
}

Decision Switchback::measure(const Sample& sample) {
  if (settling_) {
    settling_ = false;
    return ask(asked_, "switchback: settled");
  }
  done_[arms_[slot_]].add(sample.work);
  if (++in_arm_ < arm_length_) return ask(asked_, "switchback: in a trial");
  in_arm_ = 0;
  const std::optional<double> difference = log_speedup(done_[kHome], done_[kNeighbour]);
  if (difference && *difference <= -kHarm) return conclude(sample, Verdict::no_better);
  if (++slot_ < arms_.size()) {
    settling_ = arms_[slot_] != arms_[slot_ - 1];
    return ask(spread_of(arms_[slot_]), "switchback: in a trial");
  }
  if (difference) {
    differences_.push_back(*difference);
  } else {
    ++void_blocks_;
  }
  const Verdict found = verdict();
  return found == Verdict::open ? next_block("switchback: in a trial") : conclude(sample, found);
}

Switchback::Verdict Switchback::verdict() const {
  const std::size_t blocks = differences_.size();
  const double sum = std::accumulate(differences_.begin(), differences_.end(), 0.0);
  if (void_blocks_ > kMostVoidBlocks) return Verdict::cannot_tell;
  if (blocks >= kFirstGiveUp && sum <= 0) return Verdict::no_better;
  if (std::find(std::begin(kLooks), std::end(kLooks), blocks) != std::end(kLooks) &&
      sum >= kLeastGain * static_cast<double>(blocks) &&
      sign_flip_p(differences_) <= kLookErrorRate) {
    return Verdict::better;
  }
  return blocks >= kLooks[2] ? Verdict::cannot_tell : Verdict::open;
}

Decision Switchback::conclude(const Sample& sample, Verdict verdict) {
  ++counts_.trials;
  if (verdict == Verdict::better) {
    ++counts_.moves;
    home_ += direction_;
    // On in the same direction; the other one has just lost.
    open_[direction_ > 0] = true;
    open_[direction_ < 0] = false;
    rest_length_ = kFirstRest;
    arm_length_ = std::max(arm_length_ / 2, kShortestArm);
    return next_trial(sample, "switchback: moved, it pays");
  }
  open_[direction_ > 0] = false;
  return next_trial(sample, verdict == Verdict::no_better ? "switchback: the neighbour is no better"
                                                          : "switchback: cannot tell, stays");
}

}  // namespace atl::runtime
