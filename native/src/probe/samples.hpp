// Samples of one figure, and when there are enough of them.
//
// Sampling stops when half the 95 % interval of the median is under `settle` of the median, when
// the budget is spent, or when there are as many samples as allowed; never before the third.
// The interval is by order statistics (the sign test; Conover, Practical Nonparametric Statistics
// 3.2): it asks nothing of the distribution, which has a long tail here. Below 6 samples there is
// no such interval, so nothing settles before the sixth.
#pragma once

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
