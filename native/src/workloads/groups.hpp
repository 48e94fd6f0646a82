// The answers of W1 and W2, and what both variants of them share.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "rows.hpp"

namespace atl::workloads {

// A row per group, in any order: its key and its result, which is the count (W2) or twice the
// median (W1). Twice, so that it is an integer: the median of an even number of values is the mean
// of the middle two. Values lie between -2^62 and 2^62: those of the data sets are below 2^31.
// There is a part per thread.
using Groups = std::vector<std::vector<Record>>;

// Reorders the values; there is at least one.
inline std::int64_t twice_median(std::span<std::int64_t> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return 2 * *middle;
  return *middle + *std::max_element(values.begin(), middle);
}

// The parts of a team's `Local<std::vector<Record>>`.
template <class Local>
Groups parts_of(Local& local) {
  Groups parts;
  local.for_each([&](std::vector<Record>& part) { parts.push_back(std::move(part)); });
  return parts;
}

}  // namespace atl::workloads
