// Finds huge pages in /proc/PID/smaps, for kernels without PAGEMAP_SCAN (before Linux 6.7).
#pragma once

#include <cstdint>
#include <istream>

namespace atl::base {

// Returns the bytes on anonymous huge pages in all mappings that overlap [begin, end), counting
// whole mappings. Returns 0 if the text has another format.
[[nodiscard]] std::uint64_t huge_bytes_in(std::istream& smaps, std::uint64_t begin,
                                          std::uint64_t end);

}  // namespace atl::base
