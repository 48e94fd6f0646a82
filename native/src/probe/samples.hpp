// Samples of one figure, and when there are enough of them.
//
// Sampling stops when half the 95 % interval of the median is under `settle` of the median, when
// the budget is spent, or when there are as many samples as allowed; never before the third.
// The interval is by order statistics (the sign test; Conover, Practical Nonparametric Statistics
// 3.2): it asks nothing of the distribution, which has a long tail here. Below 6 samples there is
// no such interval, so nothing settles before the sixth.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "protocol.hpp"

namespace atl::probe {

inline constexpr std::size_t kLeastSamples = 3;

// The ranks (from 0) of the two order statistics of `count` samples between which the median lies
// with at least 95 % probability; none below 6 samples.
struct Ranks {
  std::size_t low;
  std::size_t high;
};
std::optional<Ranks> median_ranks(std::size_t count);

// How often to repeat something so that it takes `sample_ns`, from 1 to `most`; time_ns(count) does
// it so often and tells how long that took. Whoever loses its CPU meanwhile must not end up with a
// sample of a few repetitions, most of which is the clock: what could be one such loss counts if
// it was as slow twice.
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
  // The budget begins now.
  explicit Samples(const Limits& limits);

  void add(double value);
  [[nodiscard]] bool done() const;
  [[nodiscard]] bool settled() const;
  [[nodiscard]] double median() const;  // needs a sample
  // In the order in which they were taken.
  [[nodiscard]] const std::vector<double>& values() const { return values_; }

 private:
  Limits limits_;
  std::int64_t deadline_ns_;
  std::vector<double> values_;
  std::vector<double> sorted_;
};

}  // namespace atl::probe
