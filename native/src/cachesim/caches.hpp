// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-or-later
// The caches of a machine of chiplets: what each access of a CPU hits, and from where a line comes.
//
// The model:
// - A core has an L1 and an L2, which its hardware threads share. L2 holds all that L1 holds.
// - A chiplet has an L3 for what its L2s push out (a victim cache, as on EPYC). A line that a core
//   takes from its L3 leaves it.
// - A line comes from the own chiplet if a cache there has it, else from the nearest chiplet that
//   has it, else from its home, the node of its physical address.
// - A store takes every other copy away. A line that was written stays dirty until its last copy is
//   pushed out of an L3; then it is written back to its home.
// - A line that comes from beyond its chiplet waits for others on its way (traffic.hpp).
// - Replacement is least recently used, everywhere. L2 does not see hits of L1.
//
// How it is fast and exact: the number of sets of each cache is a multiple of 64. So a line, the
// lines that it can push out, and the lines that those push out in turn all have the same low six
// bits. The machine is 64 machines (shards) that share nothing. An access takes the lock of its
// shard, one; in it the simulation is sequential. Accesses that happen in some order have the same
// result as in a simulation by one thread in that order.
//
// The most recently used line of an L1 set is tried before that, without a lock: to hit it changes
// nothing.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "counters.hpp"
#include "machine.hpp"
#include "traffic.hpp"

namespace atl::cachesim {

// A line's number (address / 64), at most 30 bits, and in an L1 a flag below it: the core may write
// without asking, since the line is dirty already and nobody else has it.
using Tag = std::uint32_t;

// What the caches have of a line. For who holds the lock of its shard.
struct Held {
  static constexpr std::uint64_t kDirty = std::uint64_t{1} << kMostChiplets;

  std::uint64_t cores = 0;  // bits: their L2 has it
  std::uint64_t state = 0;  // bits: the chiplets whose L3 has it; kDirty

  [[nodiscard]] std::uint64_t l3s() const { return state & ~kDirty; }
  [[nodiscard]] bool dirty() const { return (state & kDirty) != 0; }
};

class Caches {
 public:
  explicit Caches(const Machine& machine);
  ~Caches();
  Caches(const Caches&) = delete;
  Caches& operator=(const Caches&) = delete;

  // A CPU's access to the line at `address / 64`, counted in `row` (counters.hpp). Returns how many
  // cycles it waits. Memory that no node has is not cached and not counted. For any threads, each
  // with rows of its own.
  std::uint32_t access(unsigned cpu, std::uint64_t address, bool store, std::uint64_t* row) {
    const Core& core = *core_of_cpu_[cpu];
    const Tag wanted = static_cast<Tag>(address >> kLineShift) << 1 | 1U;
    const std::size_t set = (wanted >> 1 & (l1_.sets - 1)) * l1_.ways;
    // Relaxed: nothing is read on the strength of this tag. If it is being taken away meanwhile,
    // this access came first.
    const Tag newest = std::atomic_ref(core.l1[set]).load(std::memory_order_relaxed);
    if ((newest | Tag{!store}) == wanted && address < kMostBytes) [[likely]] {
      add(row[store ? kStores : kLoads], 1);
      return 0;
    }
    return search(core, address, store, row);
  }

  // What lines wait for each other; who drives the CPUs reports to it.
  [[nodiscard]] Traffic& traffic() { return traffic_; }

  // Empties all caches without writing back. No access may be under way.
  void clear();

 private:
  friend class Inspector;  // of the tests

  struct Core {
    Tag* l1;
    Tag* l2;
    unsigned chiplet;
    std::uint64_t bit;  // in Held::cores
  };
  struct Chiplet {
    Tag* l3;
    std::uint64_t bit;    // in Held::state
    std::uint64_t cores;  // bits
    unsigned node;
    std::uint64_t same_node, same_package;  // bits of other chiplets
  };
  struct alignas(64) Lock {
    std::atomic<bool> taken{false};
  };

  std::uint32_t search(const Core& core, std::uint64_t address, bool store, std::uint64_t* row);
  struct Fetched {
    std::uint32_t latency, queued;  // cycles
  };
  Fetched fetch(const Core& core, Tag line, const Held& held, std::uint64_t* row);
  void make_room(const Core& core, Tag* l2, std::uint64_t* row);
  void keep_in_l3(const Chiplet& chiplet, Tag line, Held& held, std::uint64_t* row);
  std::uint32_t take_away(const Core& core, Tag line, Held& held, std::uint64_t* row);
  void forbid_writing(std::uint64_t cores, Tag line);

  [[nodiscard]] std::uint64_t chiplets_of(const Held& held) const;
  [[nodiscard]] Source distance(const Chiplet& from, unsigned to) const;
  [[nodiscard]] Tag* l1_set(const Core& core, Tag line) const;
  [[nodiscard]] Tag* l2_set(const Core& core, Tag line) const;
  [[nodiscard]] Tag* l3_set(const Chiplet& chiplet, Tag line) const;

  Shape l1_, l2_, l3_;
  std::uint32_t latency_[kSources];
  Traffic traffic_;
  std::vector<unsigned> package_of_node_;
  std::vector<Tag> tags_;  // of all caches
  std::vector<Core> cores_;
  std::vector<Chiplet> chiplets_;
  std::vector<const Core*> core_of_cpu_;
  std::vector<std::uint8_t> home_;  // the node of each MiB
  // Of each line; the kernel gives pages to the parts that are touched.
  std::size_t directory_bytes_ = 0;
  Held* directory_ = nullptr;
  std::unique_ptr<Lock[]> locks_;
};

}  // namespace atl::cachesim
