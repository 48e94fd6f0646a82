// Huge pages by /proc/PID/smaps, for kernels that have no PAGEMAP_SCAN (before Linux 6.7).
#pragma once

#include <cstdint>
#include <istream>

namespace atl::base {

// The bytes on anonymous huge pages in the mappings that overlap [begin, end), all of each counted.
// 0 if the text has another format.
[[nodiscard]] std::uint64_t huge_bytes_in(std::istream& smaps, std::uint64_t begin,
                                          std::uint64_t end);

}  // namespace atl::base
