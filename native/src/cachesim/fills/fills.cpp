// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-or-later
#include "fills.hpp"

#include <cstdarg>
#include <cstdio>

namespace atl::cachesim {
namespace {

struct Line {
  const char* name;
  std::uint64_t Fills::* number;
};

constexpr Line kSourceLines[] = {
    {"own L3", &Fills::own_l3},
    {"other chiplets", &Fills::other_chiplets},
    {"other nodes", &Fills::other_nodes},
    {"local memory", &Fills::local_memory},
    {"remote memory", &Fills::remote_memory},
};
constexpr Line kOtherLines[] = {
    {"instructions", &Fills::instructions}, {"stall cycles", &Fills::stalls},
    {"accesses", &Fills::accesses},         {"L2 hits", &Fills::l2_hits},
    {"written back", &Fills::written_back}, {"taken away", &Fills::taken_away},
};

template <typename Visit>
void each_number(const Visit& visit) {
  for (const Line& line : kOtherLines) visit(line.number);
  for (const Line& line : kSourceLines) visit(line.number);
}

Fills sum(const std::vector<Fills>& all) {
  Fills found;
  for (const Fills& one : all) {
    each_number([&](auto number) { found.*number += one.*number; });
  }
  return found;
}

void add_row(Fills& fills, const Board& board, unsigned chiplet, const std::uint64_t* row) {
  const unsigned node = board.node_of_chiplet[chiplet];
  fills.instructions += row[kInstructions];
  fills.stalls += row[kStalls];
  fills.accesses += row[kLoads] + row[kStores];
  fills.l2_hits += row[kL2Hits];
  fills.taken_away += row[kTakenAway];
  for (unsigned from = 0; from < board.chiplets; ++from) {
    const std::uint64_t lines = row[kFromChiplet + from];
    const bool same_node = board.node_of_chiplet[from] == node;
    (from == chiplet ? fills.own_l3
     : same_node     ? fills.other_chiplets
                     : fills.other_nodes) += lines;
  }
  for (unsigned home = 0; home < board.nodes; ++home) {
    (home == node ? fills.local_memory : fills.remote_memory) += row[kFromMemory + home];
    fills.written_back += row[kWritten + home];
  }
}

__attribute__((format(printf, 2, 3))) void print(std::string& text, const char* format, ...) {
  char line[200];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  text += line;
}

unsigned long long number(std::uint64_t value) { return value; }

double percent(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0.0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

FillsOfChiplets fills_of(Board& board) {
  FillsOfChiplets found;
  for (unsigned mode = 0; mode < kModes; ++mode) {
    found[mode].resize(board.chiplets);
    for (unsigned cpu = 0; cpu < board.cpus; ++cpu) {
      const unsigned chiplet = board.chiplet_of_cpu[cpu];
      add_row(found[mode][chiplet], board, chiplet, board.row(cpu, mode));
    }
  }
  return found;
}

FillsOfChiplets difference(const FillsOfChiplets& before, const FillsOfChiplets& after) {
  FillsOfChiplets found = after;
  for (unsigned mode = 0; mode < kModes; ++mode) {
    for (std::size_t at = 0; at < found[mode].size(); ++at) {
      each_number([&](auto number) { found[mode][at].*number -= before[mode][at].*number; });
    }
  }
  return found;
}

std::string table(const FillsOfChiplets& fills) {
  const Fills user = sum(fills[kUser]), kernel = sum(fills[kKernel]);
  std::string text;
  print(text, "%-24s %14s %7s %14s\n", "simulated", "user", "share", "kernel");
  for (const Line& line : kOtherLines) {
    print(text, "%-24s %14llu %7s %14llu\n", line.name, number(user.*line.number), "",
          number(kernel.*line.number));
  }
  for (const Line& line : kSourceLines) {
    print(text, "from %-19s %14llu %5.1f %% %14llu\n", line.name, number(user.*line.number),
          percent(user.*line.number, user.all()), number(kernel.*line.number));
  }
  print(text, "\n%-24s", "simulated, user, from");
  for (const Line& line : kSourceLines) print(text, " %14s", line.name);
  text += '\n';
  for (std::size_t chiplet = 0; chiplet < fills[kUser].size(); ++chiplet) {
    print(text, "to chiplet %-13zu", chiplet);
    for (const Line& line : kSourceLines) {
      print(text, " %14llu", number(fills[kUser][chiplet].*line.number));
    }
    text += '\n';
  }
  return text;
}

}  // namespace atl::cachesim
