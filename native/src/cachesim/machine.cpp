// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-or-later
#include "machine.hpp"

#include <algorithm>
#include <bit>
#include <charconv>
#include <optional>
#include <set>
#include <string>

namespace atl::cachesim {
namespace {

using Words = std::vector<std::string_view>;

Words words_of(std::string_view line) {
  Words words;
  while (true) {
    const std::size_t start = line.find_first_not_of(" \t\r");
    if (start == std::string_view::npos) return words;
    line.remove_prefix(start);
    const std::size_t end = std::min(line.find_first_of(" \t\r"), line.size());
    words.push_back(line.substr(0, end));
    line.remove_prefix(end);
  }
}

// The words of one line, read one after the other.
class Reader {
 public:
  Reader(const Words& words, int number) : words_(words), number_(number) {}

  [[noreturn]] void fail(const std::string& what) const {
    throw BadMachine("line " + std::to_string(number_) + ": " + what);
  }
  std::string_view word() {
    if (next_ == words_.size()) fail("ends too early");
    return words_[next_++];
  }
  std::uint64_t count(std::uint64_t least, std::uint64_t most) {
    const std::string_view text = word();
    std::uint64_t value = 0;
    const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (fault != std::errc{} || end != text.data() + text.size() || value < least || value > most) {
      fail("wants a number from " + std::to_string(least) + " to " + std::to_string(most));
    }
    return value;
  }
  unsigned below(unsigned bound) { return static_cast<unsigned>(count(0, bound - 1)); }
  void want(std::string_view expected) {
    if (word() != expected) fail("wants '" + std::string(expected) + "'");
  }
  void done() const {
    if (next_ != words_.size()) fail("goes on after its end");
  }

 private:
  const Words& words_;
  int number_;
  std::size_t next_ = 0;
};

constexpr std::uint64_t kMostSets = 1 << 20;
constexpr std::uint64_t kMostLatency = 1'000'000;
constexpr std::uint64_t kMostBandwidth = 1'000'000'000;
constexpr std::uint64_t kMostMhz = 100'000;
constexpr std::uint64_t kMostQuantum = 1'000'000'000;
constexpr std::uint64_t kMib = std::uint64_t{1} << kMibShift;

Shape read_shape(Reader& line, bool power_of_two) {
  Shape shape;
  shape.sets = static_cast<std::uint32_t>(line.count(kShards, kMostSets));
  if (power_of_two && !std::has_single_bit(shape.sets)) line.fail("sets: wants a power of two");
  if (shape.sets % kShards != 0) line.fail("sets: wants a multiple of 64");
  shape.ways = static_cast<std::uint32_t>(line.count(1, kMostWays));
  return shape;
}

// A name of a list and its number.
template <std::size_t kLength>
void read_named(Reader& line, const char* const (&names)[kLength], std::uint64_t most,
                std::uint32_t (&values)[kLength], std::set<std::string_view>& seen) {
  const std::string_view name = line.word();
  const auto* const found = std::find(std::begin(names), std::end(names), name);
  if (found == std::end(names)) line.fail("no such name");
  if (!seen.insert(name).second) line.fail("appears twice");
  values[found - std::begin(names)] = static_cast<std::uint32_t>(line.count(0, most));
}

Memory read_memory(Reader& line, const Machine& machine) {
  Memory memory;
  memory.node = line.below(kMostNodes);
  memory.start = line.count(0, kMostBytes - kMib);
  memory.bytes = line.count(kMib, kMostBytes - memory.start);
  if (memory.start % kMib != 0 || memory.bytes % kMib != 0) line.fail("wants multiples of 1 MiB");
  for (const Memory& other : machine.memory) {
    if (memory.start < other.start + other.bytes && other.start < memory.start + memory.bytes) {
      line.fail("overlaps other memory");
    }
  }
  return memory;
}

Cpu read_cpu(Reader& line, const Machine& machine) {
  if (line.below(kMostCpus) != machine.cpus.size()) line.fail("CPUs want to be in order, from 0");
  Cpu cpu;
  line.want("core");
  cpu.core = line.below(kMostCpus);
  line.want("chiplet");
  cpu.chiplet = line.below(kMostChiplets);
  line.want("node");
  cpu.node = line.below(kMostNodes);
  line.want("package");
  cpu.package = line.below(kMostNodes);
  for (const Cpu& other : machine.cpus) {
    if (other.core == cpu.core && other.chiplet != cpu.chiplet) line.fail("core: on two chiplets");
    if (other.chiplet == cpu.chiplet && other.node != cpu.node) line.fail("chiplet: on two nodes");
    if (other.node == cpu.node && other.package != cpu.package) line.fail("node: on two packages");
  }
  return cpu;
}

void number(Machine& machine) {
  unsigned packages = 0;
  for (const Cpu& cpu : machine.cpus) {
    machine.cores = std::max(machine.cores, cpu.core + 1);
    machine.chiplets = std::max(machine.chiplets, cpu.chiplet + 1);
    machine.nodes = std::max(machine.nodes, cpu.node + 1);
    packages = std::max(packages, cpu.package + 1);
  }
  for (const Memory& memory : machine.memory) {
    machine.nodes = std::max(machine.nodes, memory.node + 1);
  }
  for (unsigned node = 0; node < machine.nodes; ++node) {
    const auto found = std::find_if(machine.cpus.begin(), machine.cpus.end(),
                                    [node](const Cpu& cpu) { return cpu.node == node; });
    machine.package_of_node.push_back(found != machine.cpus.end() ? found->package
                                                                  : node % packages);
  }
}

}  // namespace

Machine parse_machine(std::string_view text) {
  Machine machine;
  std::set<std::string_view> seen, latencies, bandwidths;
  int number_of_line = 0;
  while (!text.empty()) {
    const std::string_view whole = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(whole.size() + 1, text.size()));
    ++number_of_line;
    const Words words = words_of(whole);
    if (words.empty() || words[0].starts_with('#')) continue;
    Reader line(words, number_of_line);
    const std::string_view key = line.word();
    const bool many = key == "latency" || key == "bandwidth" || key == "memory" || key == "cpu";
    if (!seen.insert(key).second && !many) line.fail("appears twice");
    if (key == "l1") {
      machine.l1 = read_shape(line, true);
    } else if (key == "l2") {
      machine.l2 = read_shape(line, true);
    } else if (key == "l3") {
      machine.l3 = read_shape(line, false);
    } else if (key == "latency") {
      read_named(line, kLatencyNames, kMostLatency, machine.latency, latencies);
    } else if (key == "bandwidth") {
      read_named(line, kBandwidthNames, kMostBandwidth, machine.bandwidth, bandwidths);
    } else if (key == "clock") {
      machine.clock_mhz = static_cast<std::uint32_t>(line.count(1, kMostMhz));
    } else if (key == "quantum") {
      machine.quantum = line.count(1, kMostQuantum);
    } else if (key == "memory") {
      machine.memory.push_back(read_memory(line, machine));
    } else if (key == "cpu") {
      machine.cpus.push_back(read_cpu(line, machine));
    } else {
      line.fail("no such key");
    }
    line.done();
  }
  for (const char* key : {"l1", "l2", "l3", "latency", "clock", "quantum", "memory", "cpu"}) {
    if (!seen.contains(key)) throw BadMachine("lacks '" + std::string(key) + "'");
  }
  if (latencies.size() != kSources) throw BadMachine("lacks a latency");
  number(machine);
  return machine;
}

}  // namespace atl::cachesim
