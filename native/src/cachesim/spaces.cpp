// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-or-later
#include "spaces.hpp"

#include <algorithm>

namespace atl::cachesim {

// All is relaxed: each number stands for itself. A CPU that charges a space while another gives it
// away adds to the wrong process. It would have to wake a process that slept longer than 254 others
// at just that moment.

Spaces::Spaces(Board& board) : board_(board), cpus_(board.cpus) {}

unsigned Spaces::charge(unsigned cpu, std::uint64_t root, std::uint64_t now) {
  Cpu& mine = cpus_[cpu];
  mine.space = root == 0 ? 0 : space_of(mine.space, root, now);
  spaces_[mine.space].charged.store(now, std::memory_order_relaxed);
  for (unsigned mode = 0; mode < kModes; ++mode) {
    const std::uint64_t* const row = board_.row(cpu, mode);
    std::uint64_t* const sum = board_.row_of_space(mine.space, mode);
    std::uint64_t* const charged = mine.charged[mode].columns;
    for (unsigned at = 0; at < kColumns; ++at) {
      if (row[at] == charged[at]) continue;
      // Other CPUs add to the same space.
      std::atomic_ref(sum[at]).fetch_add(row[at] - charged[at], std::memory_order_relaxed);
      charged[at] = row[at];
    }
  }
  return mine.space;
}

// `last`: tried first.
unsigned Spaces::space_of(unsigned last, std::uint64_t root, std::uint64_t now) {
  if (spaces_[last].root.load(std::memory_order_relaxed) == root) return last;
  if (const unsigned found = find(root, now); found != 0) return found;
  const std::lock_guard lock(replacing_);
  if (const unsigned found = find(root, now); found != 0) return found;  // another CPU gave it one
  const auto oldest = std::min_element(spaces_.begin() + 1, spaces_.end(),
                                       [](const Space& one, const Space& other) {
                                         return one.charged.load(std::memory_order_relaxed) <
                                                other.charged.load(std::memory_order_relaxed);
                                       });
  oldest->root.store(root, std::memory_order_relaxed);
  return give(static_cast<unsigned>(oldest - spaces_.begin()), root, now);
}

// The space of the page table, or a free one, which is then its; 0: there is none.
unsigned Spaces::find(std::uint64_t root, std::uint64_t now) {
  const auto start = static_cast<unsigned>(root / 4096 % (kSpaces - 1));
  for (unsigned step = 0; step < kSpaces - 1; ++step) {
    const unsigned space = 1 + (start + step) % (kSpaces - 1);
    std::uint64_t holder = spaces_[space].root.load(std::memory_order_relaxed);
    if (holder == 0 &&
        spaces_[space].root.compare_exchange_strong(holder, root, std::memory_order_relaxed)) {
      return give(space, root, now);
    }
    if (holder == root) return space;
  }
  return 0;
}

unsigned Spaces::give(unsigned space, std::uint64_t root, std::uint64_t now) {
  spaces_[space].charged.store(now, std::memory_order_relaxed);
  board_.root_of_space[space].store(root, std::memory_order_relaxed);
  return space;
}

}  // namespace atl::cachesim
