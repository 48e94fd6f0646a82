// `churn`: how a malloc copes with many threads, in time and memory (churn_kernels.hpp).
//
// It measures the process's malloc: preload another one into atoll-probe. The first run is not
// timed. It warms up the allocator and stops at checkpoints where no thread runs, so that the
// resident bytes (/proc/self/smaps_rollup is exact; the kernel's counters can be off by megabytes
// with many CPUs) and the requested bytes are of the same moment. The paper's overhead is the peak
// of the first divided by the peak of the second. Later runs repeat the operations from empty
// tables and are timed from the first thread's start to the last one's end.
#pragma once

#include <cstdint>
#include <string>

#include "protocol.hpp"

namespace atl::probe {

Json churn(const Request& request);

// Returns the file that contains malloc.
[[nodiscard]] std::string allocator_file();

// Returns the resident memory of this process. Does not allocate.
[[nodiscard]] std::uint64_t resident_bytes();

}  // namespace atl::probe
