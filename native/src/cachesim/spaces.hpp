// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-or-later
// Counts by address space: what a CPU counted while the page table of a process was in use.
//
// A CPU counts into its own rows only. From time to time, and before its page table changes, what
// the rows grew by is added to those of the space. So the spaces' rows sum up to the CPUs'.
#pragma once

#include <cstdint>
#include <vector>

#include "board.hpp"

namespace atl::cachesim {

class Spaces {
 public:
  explicit Spaces(Board& board);

  // Adds what the CPU counted since the last call to the space with this page table (0: not known),
  // and returns the space: its number on the board. For the CPU's thread.
  unsigned charge(unsigned cpu, std::uint64_t root);

 private:
  unsigned find(std::uint64_t root);

  Board& board_;
  std::vector<Row> charged_;  // of each CPU and mode: the row as last seen
};

}  // namespace atl::cachesim
