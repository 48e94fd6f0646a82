// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-or-later
// Counts of a board by source, seen from the chiplet whose CPU got the lines, as text.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "../board.hpp"

namespace atl::cachesim {

struct Fills {
  std::uint64_t instructions = 0;
  std::uint64_t stalls = 0;  // cycles
  std::uint64_t accesses = 0;
  std::uint64_t l2_hits = 0;
  std::uint64_t own_l3 = 0;
  std::uint64_t other_chiplets = 0;  // of the node
  std::uint64_t other_nodes = 0;     // their caches
  std::uint64_t local_memory = 0;
  std::uint64_t remote_memory = 0;
  std::uint64_t written_back = 0;
  std::uint64_t taken_away = 0;

  [[nodiscard]] std::uint64_t all() const {
    return own_l3 + other_chiplets + other_nodes + local_memory + remote_memory;
  }
};

// By mode and chiplet: what the CPUs of the chiplet have counted since the board is there.
using FillsOfChiplets = std::array<std::vector<Fills>, kModes>;
[[nodiscard]] FillsOfChiplets fills_of(Board& board);

// What was counted between two readings.
[[nodiscard]] FillsOfChiplets difference(const FillsOfChiplets& before,
                                         const FillsOfChiplets& after);

// A table of all, and one line for each chiplet. Every line says what it is without colour.
[[nodiscard]] std::string table(const FillsOfChiplets& fills);

}  // namespace atl::cachesim
