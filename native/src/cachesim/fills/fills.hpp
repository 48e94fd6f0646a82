// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-or-later
// What a board counted, by chiplet, and as text.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "../board.hpp"

namespace atl::cachesim {

// What all CPUs counted since the board is there, or between two readings.
struct Counts {
  std::uint64_t cycles = 0;  // simulated time: of the CPU that is furthest
  std::uint64_t lost_patience = 0;
  std::array<std::vector<Row>, kModes> rows;  // by chiplet: the sum of its CPUs
};
[[nodiscard]] Counts read(Board& board);
[[nodiscard]] Counts difference(const Counts& before, const Counts& after);

// A table of all by source, seen from the chiplet whose CPU got the lines, and a line for each
// chiplet. Every line says what it is without colour.
[[nodiscard]] std::string table(const Board& board, const Counts& counts);

// Format atoll/fills 1 (src/atoll/schema/fills.py), in one line.
[[nodiscard]] std::string json(const Board& board, const Counts& counts);

}  // namespace atl::cachesim
