#include "adaptive.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace atl::runtime {

namespace {

// Intervals that make a judgement; with the one that settles, a move takes five.
constexpr int kWindow = 4;
// An interval in which the group was busy for less than 1 % of one core is ignored.
constexpr double kLeastBusy = 0.01;
// Shares of busy time below which nothing can be gained that is worth a migration.
constexpr double kLeastPush = 0.02;
// One push must exceed the other by this much; within it nothing moves (hysteresis).
constexpr double kHysteresis = 1.25;
// Costs that differ by less count as equal: shares of the cost, and of the busy time.
constexpr double kRelativeMargin = 0.05;
constexpr double kAbsoluteMargin = 0.01;
// A cost that differs from the one measured at this same spread by this share, and by this multiple
// of its usual change from window to window: the job is in another phase.
constexpr double kPhase = 0.3;
constexpr double kPhaseRanges = 4;
// Of the mean of those differences: it remembers some eight windows.
constexpr double kRangeWeight = 0.125;
// Intervals for which a spread that did not pay is left alone; doubled at each further failure. A
// failure takes ten intervals, so at the longest hold new tries take 0.25 % of the time.
constexpr std::uint64_t kFirstHold = 64;
constexpr std::uint64_t kLongestHold = 4096;

double margin(double cost) { return std::max(kRelativeMargin * cost, kAbsoluteMargin); }

double busy_s(const Sample& sample) {
  double sum = 0;
  for (const TypeWork& entry : sample.work) {
    if (entry.busy_s > 0) sum += entry.busy_s;
  }
  // Nobody counted the tasks: then the threads count as busy.
  if (sample.work.empty()) sum = std::max(1, sample.threads) * sample.elapsed_s;
  return sum;
}

double cost_ns(std::uint64_t fills, double fill_ns, const FillLatency& latency) {
  return static_cast<double>(fills) * std::max(0.0, fill_ns - latency.local_chiplet_ns);
}

std::string percent(double share) {
  return std::to_string(std::lround(100 * std::min(share, 1e6))) + " %";
}

std::string describe(const Stall& stall) {
  return "memory " + percent(stall.memory) + ", other chiplets " + percent(stall.other_chiplets) +
         " of busy time";
}

}  // namespace

Decision Adaptive::decide(const Sample& sample) {
  ++now_;
  if (!sample.fills.memory || !sample.fills.remote_chiplet) {
    asked_ = 0;
    return without_counters_.step(sample);
  }
  if (sample.spread != asked_) begin(sample.spread);
  if (settling_) {
    settling_ = false;
    return {sample.spread, "settles"};
  }
  add(sample);
  if (window_.intervals < kWindow) return {sample.spread, "measures"};
  const Stall stall = {window_.memory_ns / window_.busy_ns,
                       window_.other_chiplets_ns / window_.busy_ns};
  window_ = {};
  if (!std::isfinite(stall.sum())) return {sample.spread, "counts that are no numbers"};
  return judge(sample, stall);
}

// On the first sample, or after somebody else moved the group: measures again, keeps what it knows.
void Adaptive::begin(int spread) {
  asked_ = spread;
  came_from_ = 0;
  settling_ = true;
  window_ = {};
}

void Adaptive::add(const Sample& sample) {
  const double busy = busy_s(sample);
  if (!(busy >= kLeastBusy * sample.elapsed_s && std::isfinite(busy))) return;
  const FillLatency& latency = sample.latency;
  ++window_.intervals;
  window_.busy_ns += 1e9 * busy;
  window_.memory_ns += cost_ns(*sample.fills.memory, latency.memory_ns, latency);
  window_.other_chiplets_ns +=
      cost_ns(*sample.fills.remote_chiplet, latency.remote_chiplet_ns, latency) +
      cost_ns(sample.fills.remote_node.value_or(0), latency.remote_node_ns, latency);
}

// Whether the last move paid; if so, or if there was none, where the fills push now.
Decision Adaptive::judge(const Sample& sample, const Stall& stall) {
  const double cost = stall.sum();
  const bool arrived = came_from_ != 0;
  if (other_phase(sample.spread, cost)) {
    seen_.clear();
    came_from_ = 0;
  }
  if (came_from_ != 0) {
    const int from = came_from_;
    came_from_ = 0;
    note(sample.spread, cost);
    if (cost > cost_before_ + margin(cost_before_)) {
      return move(sample, from, "did not pay, goes back: " + describe(stall));
    }
  } else if (arrived || !seen_.contains(sample.spread)) {
    note(sample.spread, cost);
  }
  Decision decision = follow(sample, stall);
  if (decision.spread != sample.spread) {
    came_from_ = sample.spread;
    cost_before_ = cost;
  }
  return decision;
}

bool Adaptive::other_phase(int spread, double cost) {
  // Windows of different spreads differ by more than noise.
  const bool same_spread = last_spread_ == spread;
  const double range = std::abs(cost - last_cost_);
  last_spread_ = spread;
  last_cost_ = cost;
  const auto here = seen_.find(spread);
  const bool other = here != seen_.end() && std::abs(cost - here->second.cost) >
                                                std::max({kPhase * here->second.cost, kLeastPush,
                                                          kPhaseRanges * mean_range_});
  if (same_spread) mean_range_ += kRangeWeight * (range - mean_range_);
  if (!other || now_ < next_phase_) return false;
  // Twice at the same spread: the first time has led nowhere, and may have been noise.
  phase_hold_ = spread == phase_spread_ ? std::clamp(2 * phase_hold_, kFirstHold, kLongestHold) : 0;
  phase_spread_ = spread;
  next_phase_ = now_ + phase_hold_;
  return true;
}

Decision Adaptive::follow(const Sample& sample, const Stall& stall) {
  int direction = 0;
  if (stall.memory >= std::max(kLeastPush, kHysteresis * stall.other_chiplets)) direction = 1;
  if (stall.other_chiplets >= std::max(kLeastPush, kHysteresis * stall.memory)) direction = -1;
  const int target = sample.spread + direction;
  if (direction == 0) return {sample.spread, "no push: " + describe(stall)};
  if (target < sample.min_spread || target > sample.max_spread) {
    return {sample.spread, "at the bound: " + describe(stall)};
  }
  if (held(target, stall.sum())) return {sample.spread, "has been there: " + describe(stall)};
  return move(sample, target, (direction > 0 ? "spreads: " : "compacts: ") + describe(stall));
}

Decision Adaptive::move(const Sample& sample, int target, const std::string& why) {
  asked_ = std::clamp(target, sample.min_spread, sample.max_spread);
  settling_ = asked_ != sample.spread;
  return {asked_, why};
}

// The group has come to a spread and found this cost there.
void Adaptive::note(int spread, double cost) {
  Seen& seen = seen_[spread];
  seen.cost = cost;
  seen.hold = std::clamp(2 * seen.hold, kFirstHold, kLongestHold);
  seen.until = now_ + seen.hold;
}

// Whether it is known, and lately, that nothing is to be gained there.
bool Adaptive::held(int target, double cost) const {
  const auto there = seen_.find(target);
  if (there == seen_.end() || now_ >= there->second.until) return false;
  return there->second.cost > cost - margin(cost);
}

}  // namespace atl::runtime
