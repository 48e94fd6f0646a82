// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-or-later
// The memory that a guest's programs and the simulation share. In the guest it is BAR 2 of the PCI
// device 1af4:1110 (ivshmem); outside, a file.
//
// All numbers are little-endian. A CPU is the position of docs/guest.md, which is Linux's number
// unless the topology renumbers.
//
// The guest may write to all of it, so the simulation believes nothing that it reads here but
// `wanted`.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "counters.hpp"
#include "machine.hpp"

namespace atl::cachesim {

// Address spaces with rows. Space 0 has what ran with an unknown page table.
inline constexpr unsigned kSpaces = 256;

struct Board {
  static constexpr std::size_t kBytes = 1 << 20;
  static constexpr char kMagic[8] = {'A', 'T', 'O', 'L', 'L', 'S', 'I', 'M'};
  static constexpr std::uint32_t kVersion = 2;

  char magic[8];
  std::uint32_t version;
  std::uint32_t cpus, chiplets, nodes;
  std::uint64_t quantum;                     // cycles
  std::uint64_t clock_mhz;                   // of the cores
  std::atomic<std::uint32_t> wanted;         // by the guest: how many programs want to count
  std::atomic<std::uint32_t> by_hand;        // by the guest: 1 if one of them is `atoll-fills on`
  std::atomic<std::uint32_t> counting;       // the answer: 0 or 1
  std::atomic<std::uint64_t> lost_patience;  // waits that a CPU gave up (clock.hpp)
  std::atomic<std::uint32_t> space_of_cpu[kMostCpus];  // at the end of its last quantum
  std::atomic<std::uint64_t> root_of_space[kSpaces];   // the address of its page table; 0: free
  std::atomic<std::uint64_t> cycles[kMostCpus];        // its clock, at the end of its last quantum
  std::uint8_t chiplet_of_cpu[kMostCpus];
  std::uint8_t node_of_chiplet[kMostCpus];
  std::uint8_t package_of_node[kMostNodes];
  Row rows[kMostCpus][kModes];
  Row rows_of_spaces[kSpaces][kModes];  // spaces.hpp

  [[nodiscard]] std::uint64_t* row(unsigned cpu, unsigned mode) { return rows[cpu][mode].columns; }
  [[nodiscard]] std::uint64_t* row_of_space(unsigned space, unsigned mode) {
    return rows_of_spaces[space][mode].columns;
  }
};
static_assert(sizeof(Board) <= Board::kBytes);

// Fills a board of zero bytes.
inline void begin(Board& board, const Machine& machine) {
  std::memcpy(board.magic, Board::kMagic, sizeof board.magic);
  board.version = Board::kVersion;
  board.cpus = static_cast<std::uint32_t>(machine.cpus.size());
  board.chiplets = machine.chiplets;
  board.nodes = machine.nodes;
  board.quantum = machine.quantum;
  board.clock_mhz = machine.clock_mhz;
  for (std::size_t cpu = 0; cpu < machine.cpus.size(); ++cpu) {
    const Cpu& place = machine.cpus[cpu];
    board.chiplet_of_cpu[cpu] = static_cast<std::uint8_t>(place.chiplet);
    board.node_of_chiplet[place.chiplet] = static_cast<std::uint8_t>(place.node);
  }
  for (unsigned node = 0; node < machine.nodes; ++node) {
    board.package_of_node[node] = static_cast<std::uint8_t>(machine.package_of_node[node]);
  }
}

}  // namespace atl::cachesim
