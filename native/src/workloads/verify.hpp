// Whether an answer is right, found in another way than the workloads': by sorting.
//
// One thread, O(n log n); needs a copy of the input. A fast wrong answer cannot be reported.
#pragma once

#include <span>

#include "groups.hpp"
#include "join.hpp"
#include "rows.hpp"

namespace atl::workloads {

[[nodiscard]] bool right_medians(std::span<const Record> records, const Groups& answer);
[[nodiscard]] bool right_counts(std::span<const Record> records, const Groups& answer);
[[nodiscard]] bool right_join(std::span<const Record> build, std::span<const Record> probe,
                              const Joined& answer);

}  // namespace atl::workloads
