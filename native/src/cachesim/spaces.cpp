// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-or-later
#include "spaces.hpp"

#include <atomic>

namespace atl::cachesim {

Spaces::Spaces(Board& board) : board_(board), charged_(std::size_t{board.cpus} * kModes) {}

unsigned Spaces::charge(unsigned cpu, std::uint64_t root) {
  const unsigned space = find(root);
  for (unsigned mode = 0; mode < kModes; ++mode) {
    const std::uint64_t* const row = board_.row(cpu, mode);
    std::uint64_t* const sum = board_.row_of_space(space, mode);
    std::uint64_t* const charged = charged_[std::size_t{cpu} * kModes + mode].columns;
    for (unsigned at = 0; at < kColumns; ++at) {
      if (row[at] == charged[at]) continue;
      // Other CPUs add to the same space.
      std::atomic_ref(sum[at]).fetch_add(row[at] - charged[at], std::memory_order_relaxed);
      charged[at] = row[at];
    }
  }
  return space;
}

// If the table is full: the space of all others. A space is never freed: a page table that is used
// again goes on where it was.
unsigned Spaces::find(std::uint64_t root) {
  if (root == 0) return 0;
  const auto start = static_cast<unsigned>(root / 4096 % (kSpaces - 1));
  for (unsigned step = 0; step < kSpaces - 1; ++step) {
    const unsigned space = 1 + (start + step) % (kSpaces - 1);
    std::uint64_t holder = board_.root_of_space[space].load(std::memory_order_relaxed);
    if (holder == 0 && board_.root_of_space[space].compare_exchange_strong(
                           holder, root, std::memory_order_relaxed)) {
      return space;
    }
    if (holder == root) return space;
  }
  return 0;
}

}  // namespace atl::cachesim
