// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-or-later
#include "fills.hpp"

#include <algorithm>
#include <atomic>
#include <cstdarg>
#include <cstdio>

namespace atl::cachesim {
namespace {

// Counts by source, seen from the chiplet whose CPUs got the lines.
struct Fills {
  std::uint64_t instructions = 0;
  std::uint64_t stalls = 0;  // cycles
  std::uint64_t queued = 0;  // cycles
  std::uint64_t accesses = 0;
  std::uint64_t l2_hits = 0;
  std::uint64_t written_back = 0;
  std::uint64_t taken_away = 0;
  std::uint64_t own_l3 = 0;
  std::uint64_t other_chiplets = 0;  // of the node
  std::uint64_t other_nodes = 0;     // their caches
  std::uint64_t local_memory = 0;
  std::uint64_t remote_memory = 0;
};

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
    {"of them queued", &Fills::queued},     {"accesses", &Fills::accesses},
    {"L2 hits", &Fills::l2_hits},           {"written back", &Fills::written_back},
    {"taken away", &Fills::taken_away},
};

void add_row(Fills& fills, const Board& board, unsigned chiplet, const Row& counted) {
  const std::uint64_t* const row = counted.columns;
  const unsigned node = board.node_of_chiplet[chiplet];
  fills.instructions += row[kInstructions];
  fills.stalls += row[kStalls];
  fills.queued += row[kQueued];
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

Fills sum(const Board& board, const std::vector<Row>& rows) {
  Fills found;
  for (unsigned chiplet = 0; chiplet < rows.size(); ++chiplet) {
    add_row(found, board, chiplet, rows[chiplet]);
  }
  return found;
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

// "name":[...], of what `write` gives for 0 to `length` - 1.
template <typename Write>
std::string list(const char* name, unsigned length, const Write& write) {
  std::string text = '"' + std::string(name) + "\":[";
  for (unsigned at = 0; at < length; ++at) {
    if (at != 0) text += ',';
    text += write(at);
  }
  return text + ']';
}

std::string member(const char* name, std::uint64_t value) {
  return '"' + std::string(name) + "\":" + std::to_string(value) + ',';
}

std::string json(const Board& board, const Row& counted) {
  const auto columns = [&](const char* name, unsigned first, unsigned length) {
    return list(name, length,
                [&](unsigned at) { return std::to_string(counted.columns[first + at]); });
  };
  constexpr struct {
    const char* name;
    Column column;
  } kNumbers[] = {{"instructions", kInstructions},
                  {"loads", kLoads},
                  {"stores", kStores},
                  {"l2_hits", kL2Hits},
                  {"taken_away", kTakenAway},
                  {"stall_cycles", kStalls},
                  {"queue_cycles", kQueued}};
  std::string text = "{";
  for (const auto& [name, column] : kNumbers) text += member(name, counted.columns[column]);
  return text + columns("from_chiplets", kFromChiplet, board.chiplets) + ',' +
         columns("from_memory", kFromMemory, board.nodes) + ',' +
         columns("written", kWritten, board.nodes) + '}';
}

}  // namespace

Counts read(Board& board) {
  Counts found;
  found.lost_patience = board.lost_patience.load();
  for (auto& rows : found.rows) rows.resize(board.chiplets);
  for (unsigned cpu = 0; cpu < board.cpus; ++cpu) {
    found.cycles = std::max(found.cycles, board.cycles[cpu].load());
    for (unsigned mode = 0; mode < kModes; ++mode) {
      std::uint64_t* const row = board.row(cpu, mode);
      std::uint64_t* const all = found.rows[mode][board.chiplet_of_cpu[cpu]].columns;
      // Relaxed: the numbers are live, and want no order between them.
      for (unsigned at = 0; at < kColumns; ++at) {
        all[at] += std::atomic_ref(row[at]).load(std::memory_order_relaxed);
      }
    }
  }
  return found;
}

Counts difference(const Counts& before, const Counts& after) {
  Counts found = after;
  found.cycles -= before.cycles;
  found.lost_patience -= before.lost_patience;
  for (unsigned mode = 0; mode < kModes; ++mode) {
    for (std::size_t chiplet = 0; chiplet < found.rows[mode].size(); ++chiplet) {
      for (unsigned at = 0; at < kColumns; ++at) {
        found.rows[mode][chiplet].columns[at] -= before.rows[mode][chiplet].columns[at];
      }
    }
  }
  return found;
}

std::string table(const Board& board, const Counts& counts) {
  const Fills user = sum(board, counts.rows[kUser]), kernel = sum(board, counts.rows[kKernel]);
  std::uint64_t lines = 0;
  for (const Line& line : kSourceLines) lines += user.*line.number;
  std::string text;
  print(text, "%-24s %14s %7s %14s\n", "simulated", "user", "share", "kernel");
  for (const Line& line : kOtherLines) {
    print(text, "%-24s %14llu %7s %14llu\n", line.name, number(user.*line.number), "",
          number(kernel.*line.number));
  }
  for (const Line& line : kSourceLines) {
    print(text, "from %-19s %14llu %5.1f %% %14llu\n", line.name, number(user.*line.number),
          percent(user.*line.number, lines), number(kernel.*line.number));
  }
  print(text, "\n%-24s", "simulated, user, from");
  for (const Line& line : kSourceLines) print(text, " %14s", line.name);
  text += '\n';
  for (unsigned chiplet = 0; chiplet < board.chiplets; ++chiplet) {
    Fills own;
    add_row(own, board, chiplet, counts.rows[kUser][chiplet]);
    print(text, "to chiplet %-13u", chiplet);
    for (const Line& line : kSourceLines) print(text, " %14llu", number(own.*line.number));
    text += '\n';
  }
  print(text, "\nwaits for the slowest CPU that were given up: %llu\n",
        number(counts.lost_patience));
  return text;
}

std::string json(const Board& board, const Counts& counts) {
  const auto rows = [&](const char* name, Mode mode) {
    return list(name, board.chiplets,
                [&](unsigned at) { return json(board, counts.rows[mode][at]); });
  };
  return R"({"format":"atoll/fills","version":1,"source":"simulated",)" +
         member("quantum_cycles", board.quantum) + member("clock_mhz", board.clock_mhz) +
         member("cycles", counts.cycles) + member("lost_patience", counts.lost_patience) +
         list("node_of_chiplet", board.chiplets,
              [&](unsigned at) { return std::to_string(board.node_of_chiplet[at]); }) +
         ',' +
         list("package_of_node", board.nodes,
              [&](unsigned at) { return std::to_string(board.package_of_node[at]); }) +
         ',' + rows("user", kUser) + ',' + rows("kernel", kKernel) + "}\n";
}

}  // namespace atl::cachesim
