// `churn`: how a malloc copes with many threads, in time and in memory (churn_kernels.hpp).
//
// The malloc is the process's: preload another one into atoll-probe. The first run is not timed:
// it warms the allocator up, and stops at checkpoints where nothing moves, so that what is resident
// (/proc/self/smaps_rollup: exact; the kernel's counters are off by megabytes on many CPUs) and
// what was asked for are those of one moment. The paper's overhead is the one's peak over the
// other's. Later runs do the same operations from empty tables and are timed, from the first
// thread's begin to the last one's end.
#pragma once

#include <cstdint>
#include <string>

#include "protocol.hpp"

namespace atl::probe {

Json churn(const Request& request);

// The file that the address of malloc is in.
[[nodiscard]] std::string allocator_file();

// What of this process is in memory. Does not allocate.
[[nodiscard]] std::uint64_t resident_bytes();

}  // namespace atl::probe
