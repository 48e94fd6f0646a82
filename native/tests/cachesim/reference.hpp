// The model of caches.hpp once more, as plainly as possible: for one thread, slow, with no
// directory, no tags and no shards, and without limits of bandwidth (traffic_test.cpp has a queue
// for them). It shares only the description of the machine with the other.
#pragma once

#include <algorithm>
#include <cstdint>
#include <list>
#include <map>
#include <set>
#include <vector>

#include "cachesim/counters.hpp"

namespace atl::cachesim {

class Reference {
 public:
  explicit Reference(const Machine& machine)
      : rows(machine.cpus.size(), std::vector<std::uint64_t>(kColumns)), machine_(machine) {
    for (unsigned core = 0; core < machine.cores; ++core) {
      l1_.emplace_back(machine.l1);
      l2_.emplace_back(machine.l2);
    }
    for (unsigned chiplet = 0; chiplet < machine.chiplets; ++chiplet) l3_.emplace_back(machine.l3);
  }

  std::uint32_t access(unsigned cpu, std::uint64_t address, bool store) {
    const std::uint64_t line = address / 64;
    const int home = home_of(line);
    if (home < 0) return 0;
    const Cpu& me = machine_.cpus[cpu];
    auto& row = rows[cpu];
    ++row[store ? kStores : kLoads];
    std::uint32_t cycles = 0;
    if (!l2_[me.core].has(line)) {
      cycles = fetch(me, line, home, row);
      l3_[me.chiplet].erase(line);
      if (l2_[me.core].is_full(line)) push_out_of_l2(me, line, row);
      l2_[me.core].touch(line);
    } else if (!l1_[me.core].has(line)) {
      ++row[kL2Hits];
      cycles = machine_.latency[kL2];
      l2_[me.core].touch(line);
    }
    if (store) {
      cycles = std::max(cycles, take_away(me, line, row));
      dirty_.insert(line);
    }
    if (!l1_[me.core].has(line) && l1_[me.core].is_full(line)) {
      l1_[me.core].erase(l1_[me.core].oldest(line));
    }
    l1_[me.core].touch(line);
    row[kStalls] += cycles;
    return cycles;
  }

  std::vector<std::vector<std::uint64_t>> rows;

 private:
  class Cache {
   public:
    explicit Cache(Shape shape) : shape_(shape), sets_(shape.sets) {}

    bool has(std::uint64_t line) {
      const auto& set = set_of(line);
      return std::find(set.begin(), set.end(), line) != set.end();
    }
    bool is_full(std::uint64_t line) { return set_of(line).size() == shape_.ways; }
    std::uint64_t oldest(std::uint64_t line) { return set_of(line).front(); }
    void erase(std::uint64_t line) { set_of(line).remove(line); }
    void touch(std::uint64_t line) {
      erase(line);
      set_of(line).push_back(line);
    }

   private:
    // Sets that are a power of two: the line's low bits. Else the low six bits stay (ways of a
    // shard), and the rest goes modulo.
    std::list<std::uint64_t>& set_of(std::uint64_t line) {
      return sets_[line % 64 + line / 64 % (shape_.sets / 64) * 64];
    }
    Shape shape_;
    std::vector<std::list<std::uint64_t>> sets_;
  };

  int home_of(std::uint64_t line) const {
    for (const Memory& memory : machine_.memory) {
      if (line * 64 >= memory.start && line * 64 < memory.start + memory.bytes) {
        return static_cast<int>(memory.node);
      }
    }
    return -1;
  }
  // The CPU of a chiplet, for its place.
  const Cpu& of_chiplet(unsigned chiplet) const {
    return *std::find_if(machine_.cpus.begin(), machine_.cpus.end(),
                         [chiplet](const Cpu& cpu) { return cpu.chiplet == chiplet; });
  }
  Source distance(const Cpu& me, unsigned chiplet) const {
    const Cpu& other = of_chiplet(chiplet);
    if (chiplet == me.chiplet) return kOwnL3;
    if (other.node == me.node) return kOtherChiplet;
    return other.package == me.package ? kNearCache : kFarCache;
  }
  std::set<unsigned> chiplets_with(std::uint64_t line) {
    std::set<unsigned> found;
    for (const Cpu& cpu : machine_.cpus) {
      if (l2_[cpu.core].has(line) || l3_[cpu.chiplet].has(line)) found.insert(cpu.chiplet);
    }
    return found;
  }
  std::uint32_t fetch(const Cpu& me, std::uint64_t line, int home,
                      std::vector<std::uint64_t>& row) {
    std::map<std::pair<Source, unsigned>, unsigned> by_distance;
    for (const unsigned chiplet : chiplets_with(line)) {
      by_distance[{distance(me, chiplet), chiplet}] = chiplet;
    }
    if (!by_distance.empty()) {
      const auto& [key, chiplet] = *by_distance.begin();
      ++row[kFromChiplet + chiplet];
      return machine_.latency[key.first];
    }
    const auto node = static_cast<unsigned>(home);
    ++row[kFromMemory + node];
    if (node == me.node) return machine_.latency[kLocalMemory];
    return machine_
        .latency[machine_.package_of_node[node] == me.package ? kNearMemory : kFarMemory];
  }
  void push_out_of_l2(const Cpu& me, std::uint64_t line, std::vector<std::uint64_t>& row) {
    const std::uint64_t gone = l2_[me.core].oldest(line);
    l1_[me.core].erase(gone);
    l2_[me.core].erase(gone);
    Cache& l3 = l3_[me.chiplet];
    if (!l3.has(gone) && l3.is_full(gone)) {
      const std::uint64_t last = l3.oldest(gone);
      l3.erase(last);
      if (dirty_.contains(last) && chiplets_with(last).empty()) {
        dirty_.erase(last);
        ++row[kWritten + static_cast<unsigned>(home_of(last))];
      }
    }
    l3.touch(gone);
  }
  std::uint32_t take_away(const Cpu& me, std::uint64_t line, std::vector<std::uint64_t>& row) {
    std::uint32_t cycles = 0;
    std::set<unsigned> cores;
    for (const Cpu& other : machine_.cpus) {
      if (other.core != me.core && l2_[other.core].has(line)) {
        cores.insert(other.core);
        cycles = std::max(cycles, machine_.latency[distance(me, other.chiplet)]);
      }
      if (l3_[other.chiplet].has(line)) {
        cycles = std::max(cycles, machine_.latency[distance(me, other.chiplet)]);
      }
    }
    for (Cache& l3 : l3_) l3.erase(line);
    for (const unsigned core : cores) {
      l1_[core].erase(line);
      l2_[core].erase(line);
      ++row[kTakenAway];
    }
    return cycles;
  }

  Machine machine_;
  std::vector<Cache> l1_, l2_, l3_;
  std::set<std::uint64_t> dirty_;
};

}  // namespace atl::cachesim
