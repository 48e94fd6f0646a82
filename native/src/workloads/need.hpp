// How much memory a workload needs, so that one that does not fit is refused and not killed.
#pragma once

#include <cstdint>

#include "options.hpp"

namespace atl::workloads {

// Bytes of the input: 16 a row, of both tables in a join.
[[nodiscard]] std::uint64_t input_bytes(const Options& options);

// Bytes of what the workload must hold beside its input: w1 a value of 8 bytes for each record and
// a row for each group, w2 a row for each group, w3 with `keep` 24 bytes for each joined row.
[[nodiscard]] std::uint64_t held_bytes(const Options& options);

// Bytes of the whole at its peak with glibc's malloc, from above. Pure.
[[nodiscard]] std::uint64_t needed_bytes(const Options& options);

// Throws UsageFault if `available` bytes are not enough.
void require_memory(const Options& options, std::uint64_t available);

}  // namespace atl::workloads
