#include "base/smaps.hpp"

#include <cinttypes>
#include <cstdio>
#include <string>

namespace atl::base {

std::uint64_t huge_bytes_in(std::istream& smaps, std::uint64_t begin, std::uint64_t end) {
  std::uint64_t bytes = 0;
  bool overlaps = false;
  for (std::string line; std::getline(smaps, line);) {
    std::uint64_t from = 0;
    std::uint64_t to = 0;
    std::uint64_t kib = 0;
    // A mapping's header is "7f0000000000-7f0000200000 rw-p ..."; its figures follow, one per line.
    if (std::sscanf(line.c_str(), "%" SCNx64 "-%" SCNx64 " ", &from, &to) == 2) {
      overlaps = from < end && begin < to;
    } else if (overlaps && std::sscanf(line.c_str(), "AnonHugePages: %" SCNu64, &kib) == 1) {
      bytes += kib * 1024;
    }
  }
  return bytes;
}

}  // namespace atl::base
