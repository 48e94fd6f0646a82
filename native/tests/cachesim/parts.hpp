// Machines for the tests of the simulated caches, and counts in the words of the model.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cachesim/caches.hpp"

namespace atl::cachesim {

inline constexpr std::uint64_t kLine = 64;
inline constexpr std::uint64_t kNodeBytes = std::uint64_t{64} << 20;

// Nodes of two chiplets of two cores, one node to a package. Node n has the memory from
// n * kNodeBytes on. `threads`: of a core, neighbours in number. `bandwidth`: lines of a
// description.
struct Built {
  std::string l1 = "64 2", l2 = "128 4", l3 = "256 8";  // 8, 32 and 128 KiB
  unsigned nodes = 2, threads = 1;
  unsigned nodes_of_package = 1;
  unsigned memory_only = 0;  // nodes
  unsigned chiplets_of_node = 2, cores_of_chiplet = 2;
  std::string bandwidth = "";

  [[nodiscard]] std::string text() const {
    std::string text = "l1 " + l1 + "\nl2 " + l2 + "\nl3 " + l3 + "\nclock 2000\nquantum 1000\n";
    std::uint32_t cycles = 10;
    for (const char* name : kLatencyNames) {
      text += "latency " + std::string(name) + " " + std::to_string(cycles) + "\n";
      cycles += 10;
    }
    for (std::uint64_t node = 0; node < nodes + memory_only; ++node) {
      text += "memory " + std::to_string(node) + " " + std::to_string(node * kNodeBytes) + " " +
              std::to_string(kNodeBytes) + "\n";
    }
    text += bandwidth;
    const unsigned cores = nodes * chiplets_of_node * cores_of_chiplet;
    for (unsigned cpu = 0; cpu < cores * threads; ++cpu) {
      const unsigned core = cpu / threads, chiplet = core / cores_of_chiplet;
      const unsigned node = chiplet / chiplets_of_node;
      text += "cpu " + std::to_string(cpu) + " core " + std::to_string(core) + " chiplet " +
              std::to_string(chiplet) + " node " + std::to_string(node) + " package " +
              std::to_string(node / nodes_of_package) + "\n";
    }
    return text;
  }
  [[nodiscard]] Machine machine() const { return parse_machine(text()); }
};

// A row of counts for each CPU, and the caches that fill them.
class Simulated {
 public:
  explicit Simulated(const Machine& machine) : caches(machine) {
    rows.assign(machine.cpus.size(), std::vector<std::uint64_t>(kColumns));
  }

  std::uint32_t load(unsigned cpu, std::uint64_t address) {
    return caches.access(cpu, address, false, rows[cpu].data());
  }
  std::uint32_t store(unsigned cpu, std::uint64_t address) {
    return caches.access(cpu, address, true, rows[cpu].data());
  }
  // Loads each line of [start, start + bytes) once.
  void sweep(unsigned cpu, std::uint64_t start, std::uint64_t bytes) {
    for (std::uint64_t at = start; at < start + bytes; at += kLine) load(cpu, at);
  }
  void forget() {
    for (auto& row : rows) row.assign(kColumns, 0);
  }

  [[nodiscard]] std::uint64_t l2_hits(unsigned cpu) const { return rows[cpu][kL2Hits]; }
  [[nodiscard]] std::uint64_t taken_away(unsigned cpu) const { return rows[cpu][kTakenAway]; }
  [[nodiscard]] std::uint64_t from_chiplet(unsigned cpu, unsigned chiplet) const {
    return rows[cpu][kFromChiplet + chiplet];
  }
  [[nodiscard]] std::uint64_t from_memory(unsigned cpu, unsigned node) const {
    return rows[cpu][kFromMemory + node];
  }
  [[nodiscard]] std::uint64_t written(unsigned cpu, unsigned node) const {
    return rows[cpu][kWritten + node];
  }
  // All lines that came from beyond L2.
  [[nodiscard]] std::uint64_t fills(unsigned cpu) const {
    std::uint64_t sum = 0;
    for (unsigned at = kFromChiplet; at < kWritten; ++at) sum += rows[cpu][at];
    return sum;
  }

  Caches caches;
  std::vector<std::vector<std::uint64_t>> rows;
};

}  // namespace atl::cachesim
