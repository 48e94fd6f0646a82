// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-or-later
// The memory that a guest's programs and the simulation share. In the guest it is BAR 2 of the PCI
// device 1af4:1110 (ivshmem); outside, a file.
//
// All numbers are little-endian. A CPU is the position of docs/guest.md, which is Linux's number
// unless the topology renumbers. The row of a CPU and mode is at
// `first_row + (cpu * kModes + mode) * row_bytes`, with the columns of counters.hpp. The rows of
// address spaces follow in the same way (spaces.hpp).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "counters.hpp"
#include "machine.hpp"

namespace atl::cachesim {

// Address spaces with rows. Space 0 has the counts of all that find none.
inline constexpr unsigned kSpaces = 256;

struct Board {
  static constexpr std::size_t kBytes = 1 << 20;
  static constexpr char kMagic[8] = {'A', 'T', 'O', 'L', 'L', 'S', 'I', 'M'};
  static constexpr std::uint32_t kVersion = 1;

  char magic[8];
  std::uint32_t version;
  std::uint32_t cpus, chiplets, nodes;
  std::uint32_t first_row, row_bytes;
  std::uint64_t quantum;                     // cycles
  std::atomic<std::uint32_t> wanted;         // by the guest: 1 to count, 0 to stop
  std::atomic<std::uint32_t> counting;       // the answer
  std::atomic<std::uint64_t> lost_patience;  // clock.hpp
  std::uint32_t first_space_row;
  std::atomic<std::uint32_t> space_of_cpu[kMostCpus];  // at the end of its last quantum
  std::atomic<std::uint64_t> root_of_space[kSpaces];   // the address of its page table; 0: free
  std::atomic<std::uint64_t> cycles[kMostCpus];        // the clock of each CPU
  std::uint8_t chiplet_of_cpu[kMostCpus];
  std::uint8_t node_of_chiplet[kMostCpus];
  std::uint8_t package_of_node[kMostNodes];

  [[nodiscard]] std::uint64_t* row(unsigned cpu, unsigned mode) {
    return row_at(first_row, cpu, mode);
  }
  [[nodiscard]] std::uint64_t* row_of_space(unsigned space, unsigned mode) {
    return row_at(first_space_row, space, mode);
  }

 private:
  std::uint64_t* row_at(std::size_t first, unsigned number, unsigned mode) {
    return reinterpret_cast<std::uint64_t*>(reinterpret_cast<char*>(this) + first +
                                            (std::size_t{number} * kModes + mode) * row_bytes);
  }
};

// Fills a board of zero bytes.
inline void begin(Board& board, const Machine& machine) {
  constexpr std::size_t kHostLine = 64;  // rows of different CPUs share no line of the host
  std::memcpy(board.magic, Board::kMagic, sizeof board.magic);
  board.version = Board::kVersion;
  board.cpus = static_cast<std::uint32_t>(machine.cpus.size());
  board.chiplets = machine.chiplets;
  board.nodes = machine.nodes;
  board.first_row = (sizeof(Board) + kHostLine - 1) / kHostLine * kHostLine;
  board.row_bytes = static_cast<std::uint32_t>(
      (Columns(machine).all * sizeof(std::uint64_t) + kHostLine - 1) / kHostLine * kHostLine);
  board.first_space_row = board.first_row + board.cpus * kModes * board.row_bytes;
  board.quantum = machine.quantum;
  for (std::size_t cpu = 0; cpu < machine.cpus.size(); ++cpu) {
    const Cpu& place = machine.cpus[cpu];
    board.chiplet_of_cpu[cpu] = static_cast<std::uint8_t>(place.chiplet);
    board.node_of_chiplet[place.chiplet] = static_cast<std::uint8_t>(place.node);
  }
  for (unsigned node = 0; node < machine.nodes; ++node) {
    board.package_of_node[node] = static_cast<std::uint8_t>(machine.package_of_node[node]);
  }
}

// The most rows there can be fit: columns are at most 6 + 63 + 2 * 16.
static_assert(sizeof(Board) + 64 + (kMostCpus + kSpaces) * kModes * 832 <= Board::kBytes);

}  // namespace atl::cachesim
