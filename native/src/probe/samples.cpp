#include "samples.hpp"

#include <algorithm>
#include <cmath>

#include "clock.hpp"

namespace atl::probe {

std::optional<Ranks> median_ranks(std::size_t count) {
  constexpr double kTail = 0.025;
  // 2^-1000 is still a normal double. Above that, the normal distribution is accurate enough.
  constexpr std::size_t kExact = 1000;
  std::size_t below = 0;  // number of ranks to drop at each end
  if (count > kExact) {
    const auto n = static_cast<double>(count);
    below = static_cast<std::size_t>(std::floor((n - 1.959964 * std::sqrt(n)) / 2));
  } else {
    // The number of samples below the median is binomial (count, 1/2).
    double term = std::ldexp(1.0, -static_cast<int>(count));
    double sum = term;
    while (sum <= kTail) {
      term *= static_cast<double>(count - below) / static_cast<double>(below + 1);
      ++below;
      sum += term;
    }
  }
  if (below == 0) return std::nullopt;
  return Ranks{below - 1, count - below};
}

Samples::Samples(const Limits& limits)
    : limits_(limits), deadline_ns_(now_ns() + limits.budget_ns) {}

void Samples::add(double value) {
  values_.push_back(value);
  sorted_.insert(std::upper_bound(sorted_.begin(), sorted_.end(), value), value);
}

bool Samples::done() const {
  if (values_.size() < kLeastSamples) return false;
  return values_.size() >= limits_.samples || now_ns() >= deadline_ns_ || settled();
}

bool Samples::settled() const {
  const std::optional<Ranks> ranks = median_ranks(sorted_.size());
  if (!ranks) return false;
  return sorted_[ranks->high] - sorted_[ranks->low] < 2 * limits_.settle * median();
}

double Samples::median() const {
  const std::size_t middle = sorted_.size() / 2;
  return sorted_.size() % 2 == 1 ? sorted_[middle] : (sorted_[middle - 1] + sorted_[middle]) / 2;
}

}  // namespace atl::probe
