#include "partition.hpp"

#include <algorithm>

namespace atl::runtime {

std::size_t block_begin(std::size_t bytes, std::size_t page_bytes, int ranks, int rank) {
  if (rank == ranks) return bytes;
  const auto parts = static_cast<std::size_t>(ranks);
  const auto index = static_cast<std::size_t>(rank);
  // floor(index * bytes / parts) without a product that overflows.
  const std::size_t ideal = bytes / parts * index + bytes % parts * index / parts;
  const std::size_t below = ideal / page_bytes * page_bytes;
  // Half a page and more goes up. `below + page_bytes` may pass the end of the last page.
  const bool up = ideal - below >= page_bytes - (ideal - below);
  return std::min(bytes, up ? below + page_bytes : below);
}

}  // namespace atl::runtime
