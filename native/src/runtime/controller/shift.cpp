#include "shift.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

namespace atl::runtime {

namespace {

// This gives the reference's mean to a quarter of a standard deviation.
constexpr int kReference = 16;
// In standard deviations. The slack swallows twice what the reference may be off by; with it steady
// normal noise alarms once in more than ten thousand intervals on average, a jump by two deviations
// after some 30 intervals, by three after six. A false alarm costs a trial, not a move.
constexpr double kSlack = 1;
constexpr double kAlarm = 12;
// Intervals in a row of other task types than the reference's.
constexpr int kStrange = 8;
// Below 2 % no spread can gain enough for a trial.
constexpr double kLeastDeviation = 0.02;
// The mean distance of two normal values is 1.128 standard deviations.
constexpr double kRangePerDeviation = 1.128;

}  // namespace

void Shift::learn(const Ledger& now) {
  if (const auto range = log_speedup(previous_, now)) {
    range_sum_ += std::abs(*range);
    ++ranges_;
  }
  previous_ = now;
  ++learnt_;
}

bool Shift::watch(const std::vector<TypeWork>& work) {
  Ledger now;
  now.add(work);
  if (shifted_ || now.empty()) return shifted_;
  if (learnt_ < kReference) {
    reference_.add(work);
    learn(now);
    return false;
  }
  const std::optional<double> speedup = log_speedup(reference_, now);
  if (!speedup) {
    // Other types of tasks than those of the reference: another phase of the program.
    shifted_ = ++strange_ >= kStrange;
    return shifted_;
  }
  strange_ = 0;
  const double deviation = std::max(
      kLeastDeviation, ranges_ > 0 ? range_sum_ / ranges_ / kRangePerDeviation : kLeastDeviation);
  const double distance = *speedup / deviation;
  up_ = std::max(0.0, up_ + distance - kSlack);
  down_ = std::max(0.0, down_ - distance - kSlack);
  shifted_ = up_ >= kAlarm || down_ >= kAlarm;
  return shifted_;
}

}  // namespace atl::runtime
