// Samples of one figure, and when there are enough of them.
//
// Sampling stops when half the 95 % interval of the median is below `settle` of the median, when
// the budget is spent, or at the maximum number of samples; never before the third sample.
// The interval uses order statistics (the sign test; Conover, Practical Nonparametric Statistics
// 3.2), which assume nothing about the distribution; here it has a long tail. Below 6 samples there
// is no such interval, so sampling cannot settle before the sixth.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "protocol.hpp"

namespace atl::probe {

inline constexpr std::size_t kLeastSamples = 3;

// Returns the ranks (from 0) of the two order statistics of `count` samples that enclose the median
// with at least 95 % probability; nullopt below 6 samples.
struct Ranks {
  std::size_t low;
  std::size_t high;
};
std::optional<Ranks> median_ranks(std::size_t count);

// Finds how often to repeat something so that it takes `sample_ns`, from 1 to `most` times.
// time_ns(count) repeats it `count` times and returns the duration. Losing the CPU must not lead to
// samples of a few repetitions, most of which are the clock. So a duration that may include one
// such loss counts only if a second try was as slow.
template <typename TimeNs>
std::size_t repetitions_for(double sample_ns, std::size_t most, TimeNs time_ns) {
  constexpr double kLossNs = 20e6;
  for (std::size_t count = 1;; count *= 2) {
    double ns = time_ns(count);
    if (ns >= sample_ns / 4 && ns < kLossNs) ns = std::min<double>(ns, time_ns(count));
    if (ns < sample_ns / 4 && count < most / 2) continue;
    const double wanted = static_cast<double>(count) * sample_ns / std::max(ns, 1.0);
    return static_cast<std::size_t>(std::clamp(wanted, 1.0, static_cast<double>(most)));
  }
}

class Samples {
 public:
  // The budget starts now.
  explicit Samples(const Limits& limits);

  void add(double value);
  [[nodiscard]] bool done() const;
  [[nodiscard]] bool settled() const;
  [[nodiscard]] double median() const;  // needs at least one sample
  // In the order of measurement.
  [[nodiscard]] const std::vector<double>& values() const { return values_; }

 private:
  Limits limits_;
  std::int64_t deadline_ns_;
  std::vector<double> values_;
  std::vector<double> sorted_;
};

}  // namespace atl::probe
