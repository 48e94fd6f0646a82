// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-or-later
// Counts by address space: what a CPU counted while the page table of a process was in use.
//
// A CPU counts into its own rows only. From time to time, and before its page table changes, what
// the rows grew by is added to those of the space. So the spaces' rows sum up to the CPUs'.
//
// A page table is known by its address, and nobody says when a process ends. If all spaces are
// taken, a new page table gets the one that was charged least recently. Its rows go on growing, as
// they do if the kernel gives the address to a new process, which cannot be seen from outside. So
// what a process counted is the difference of two readings.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "board.hpp"

namespace atl::cachesim {

class Spaces {
 public:
  explicit Spaces(Board& board);

  // Adds what the CPU counted since the last call to the space with this page table (0: not known),
  // and returns the space: its number on the board. `now`: cycles of the CPU. For its thread.
  unsigned charge(unsigned cpu, std::uint64_t root, std::uint64_t now);

 private:
  struct alignas(64) Cpu {
    unsigned space = 0;        // the last
    Row charged[kModes] = {};  // its rows as last seen
  };
  struct Space {
    std::atomic<std::uint64_t> root{0};     // 0: free
    std::atomic<std::uint64_t> charged{0};  // when; cycles
  };

  unsigned space_of(unsigned last, std::uint64_t root, std::uint64_t now);
  unsigned find(std::uint64_t root, std::uint64_t now);
  unsigned give(unsigned space, std::uint64_t root, std::uint64_t now);

  Board& board_;
  std::vector<Cpu> cpus_;
  std::array<Space, kSpaces> spaces_;
  std::mutex replacing_;
};

}  // namespace atl::cachesim
