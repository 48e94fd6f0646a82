// The randomisation test of paired differences (Fisher, The Design of Experiments, 1935, section
// 21; Edgington and Onghena, Randomization Tests): exact where a coin decided the sign of each.
#pragma once

#include <cstddef>
#include <span>

namespace atl::runtime {

// 2^12 sums take about ten microseconds; callers pass at most this many differences.
inline constexpr std::size_t kMostDifferences = 12;

// The share of all 2^n ways to choose the signs of `differences` whose sum is at least the one
// seen: the one-sided p-value. 1 for no differences. O(n 2^n), n <= kMostDifferences.
double sign_flip_p(std::span<const double> differences);

}  // namespace atl::runtime
