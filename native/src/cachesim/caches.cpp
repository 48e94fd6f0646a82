// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-or-later
#include "caches.hpp"

#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <new>

#include "ways.hpp"

namespace atl::cachesim {
namespace {

constexpr std::uint8_t kNobodys = 0xFF;  // a MiB that no node has
constexpr Tag kMayWrite = 1;

std::size_t tags_of(const Shape& shape) { return std::size_t{shape.sets} * shape.ways; }

// Sets keep the line's low six bits, those of its shard; the rest goes modulo.
std::size_t set_of(const Shape& shape, Tag line) {
  return (line % kShards + kShards * ((line / kShards) % (shape.sets / kShards))) * shape.ways;
}

// The lock of a shard, for a scope.
class Locked {
 public:
  explicit Locked(std::atomic<bool>& taken) : taken_(taken) {
    // Acquire and release: what the last holder did to the shard's sets and directory happened
    // before. A holder that lost its host CPU does not come back while others spin.
    for (int spins = 0; taken_.exchange(true, std::memory_order_acquire); ++spins) {
      while (taken_.load(std::memory_order_relaxed)) {
        if (++spins > kSpins) sched_yield();
      }
    }
  }
  ~Locked() { taken_.store(false, std::memory_order_release); }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

 private:
  static constexpr int kSpins = 200;
  std::atomic<bool>& taken_;
};

}  // namespace

Caches::Caches(const Machine& machine)
    : l1_(machine.l1),
      l2_(machine.l2),
      l3_(machine.l3),
      traffic_(machine),
      package_of_node_(machine.package_of_node),
      locks_(new Lock[kShards]) {
  std::copy(std::begin(machine.latency), std::end(machine.latency), latency_);
  tags_.assign(machine.cores * (tags_of(l1_) + tags_of(l2_)) + machine.chiplets * tags_of(l3_),
               kFree);
  Tag* next = tags_.data();
  cores_.resize(machine.cores);
  for (unsigned at = 0; at < machine.cores; ++at) {
    cores_[at] = {
        .l1 = next, .l2 = next + tags_of(l1_), .chiplet = 0, .bit = std::uint64_t{1} << at};
    next += tags_of(l1_) + tags_of(l2_);
  }
  chiplets_.resize(machine.chiplets);
  for (unsigned at = 0; at < machine.chiplets; ++at) {
    chiplets_[at].l3 = next;
    chiplets_[at].bit = std::uint64_t{1} << at;
    next += tags_of(l3_);
  }
  for (const Cpu& cpu : machine.cpus) {
    cores_[cpu.core].chiplet = cpu.chiplet;
    core_of_cpu_.push_back(&cores_[cpu.core]);
    Chiplet& chiplet = chiplets_[cpu.chiplet];
    chiplet.cores |= cores_[cpu.core].bit;
    chiplet.node = cpu.node;
    for (const Cpu& other : machine.cpus) {
      const std::uint64_t bit = std::uint64_t{1} << other.chiplet;
      if (other.chiplet == cpu.chiplet) continue;
      if (other.node == cpu.node) chiplet.same_node |= bit;
      if (other.package == cpu.package) chiplet.same_package |= bit;
    }
  }
  std::uint64_t end = 0;
  home_.assign(kMostBytes >> kMibShift, kNobodys);
  for (const Memory& memory : machine.memory) {
    std::fill_n(home_.begin() + static_cast<std::ptrdiff_t>(memory.start >> kMibShift),
                memory.bytes >> kMibShift, static_cast<std::uint8_t>(memory.node));
    end = std::max(end, memory.start + memory.bytes);
  }
  directory_bytes_ = (end >> kLineShift) * sizeof(Held);
  void* const made = mmap(nullptr, directory_bytes_, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (made == MAP_FAILED) throw std::bad_alloc();
  directory_ = static_cast<Held*>(made);  // zero bytes: nobody has a line
}

Caches::~Caches() { munmap(directory_, directory_bytes_); }

void Caches::clear() {
  traffic_.clear();
  std::fill(tags_.begin(), tags_.end(), kFree);
  madvise(directory_, directory_bytes_, MADV_DONTNEED);  // reads as zero from now on
}

Tag* Caches::l1_set(const Core& core, Tag line) const { return core.l1 + set_of(l1_, line); }
Tag* Caches::l2_set(const Core& core, Tag line) const { return core.l2 + set_of(l2_, line); }
Tag* Caches::l3_set(const Chiplet& chiplet, Tag line) const {
  return chiplet.l3 + set_of(l3_, line);
}

std::uint32_t Caches::search(const Core& core, std::uint64_t address, bool store,
                             std::uint64_t* row) {
  if (address >= kMostBytes || home_[address >> kMibShift] == kNobodys) return 0;
  const Tag line = static_cast<Tag>(address >> kLineShift);
  add(row[store ? kStores : kLoads], 1);
  const Locked locked(locks_[line % kShards].taken);
  Tag* const l1 = l1_set(core, line);
  const std::uint32_t at = find(l1, l1_.ways, line << 1, kMayWrite);
  if (at < l1_.ways && (!store || (way(l1[at]) & kMayWrite) != 0)) {
    put_first(l1, at, way(l1[at]));
    return 0;
  }
  Held& held = directory_[line];
  Tag* const l2 = l2_set(core, line);
  std::uint32_t cycles = 0, queued = 0;
  if ((held.cores & core.bit) == 0) {
    const Fetched fetched = fetch(core, line, held, row);
    cycles = fetched.latency;
    queued = fetched.queued;
    const Chiplet& chiplet = chiplets_[core.chiplet];
    if ((held.state & chiplet.bit) != 0) {
      Tag* const l3 = l3_set(chiplet, line);
      remove(l3, l3_.ways, find(l3, l3_.ways, line));
      held.state &= ~chiplet.bit;
    }
    make_room(core, l2, row);
    forbid_writing(held.cores, line);
    held.cores |= core.bit;
    put_first(l2, l2_.ways - 1, line);
  } else if (at == l1_.ways) {
    add(row[kL2Hits], 1);
    cycles = latency_[kL2];
    put_first(l2, find(l2, l2_.ways, line), line);
  }
  if (store) {
    cycles = std::max(cycles, take_away(core, line, held, row));
    held.state |= Held::kDirty;
  }
  const bool may_write = held.cores == core.bit && held.state == Held::kDirty;
  put_first(l1, at < l1_.ways ? at : l1_.ways - 1, line << 1 | (may_write ? kMayWrite : 0));
  cycles += queued;
  add(row[kStalls], cycles);
  if (queued != 0) add(row[kQueued], queued);
  return cycles;
}

// Counts from where the line comes.
Caches::Fetched Caches::fetch(const Core& core, Tag line, const Held& held, std::uint64_t* row) {
  const Chiplet& chiplet = chiplets_[core.chiplet];
  const std::uint64_t having = chiplets_of(held);
  if (having == 0) {
    const unsigned node = home_[line >> (kMibShift - kLineShift)];
    add(row[kFromMemory + node], 1);
    const std::uint32_t queued = traffic_.wait_from_memory(core.chiplet, node);
    if (node == chiplet.node) return {latency_[kLocalMemory], queued};
    const bool near = package_of_node_[node] == package_of_node_[chiplet.node];
    return {latency_[near ? kNearMemory : kFarMemory], queued};
  }
  std::uint64_t nearest = having;
  for (const std::uint64_t set : {chiplet.bit, chiplet.same_node, chiplet.same_package}) {
    if ((having & set) != 0) {
      nearest = having & set;
      break;
    }
  }
  const auto from = static_cast<unsigned>(std::countr_zero(nearest));
  add(row[kFromChiplet + from], 1);
  return {latency_[distance(chiplet, from)],
          from == core.chiplet ? 0 : traffic_.wait_from_chiplet(core.chiplet, from)};
}

// The chiplets of which a cache has the line.
std::uint64_t Caches::chiplets_of(const Held& held) const {
  std::uint64_t found = held.l3s();
  for (std::uint64_t left = held.cores; left != 0; left &= left - 1) {
    found |= chiplets_[cores_[static_cast<unsigned>(std::countr_zero(left))].chiplet].bit;
  }
  return found;
}

Source Caches::distance(const Chiplet& from, unsigned to) const {
  const std::uint64_t bit = chiplets_[to].bit;
  if (bit == from.bit) return kOwnL3;
  if ((bit & from.same_node) != 0) return kOtherChiplet;
  return (bit & from.same_package) != 0 ? kNearCache : kFarCache;
}

// Frees the last way of an L2 set.
void Caches::make_room(const Core& core, Tag* l2, std::uint64_t* row) {
  const Tag gone = way(l2[l2_.ways - 1]);
  if (gone == kFree) return;
  Tag* const l1 = l1_set(core, gone);
  const std::uint32_t at = find(l1, l1_.ways, gone << 1, kMayWrite);
  if (at < l1_.ways) remove(l1, l1_.ways, at);
  Held& held = directory_[gone];
  held.cores &= ~core.bit;
  keep_in_l3(chiplets_[core.chiplet], gone, held, row);
}

// Puts a line that an L2 lost into the L3. What that pushes out may be the machine's last copy.
void Caches::keep_in_l3(const Chiplet& chiplet, Tag line, Held& held, std::uint64_t* row) {
  Tag* const l3 = l3_set(chiplet, line);
  if ((held.state & chiplet.bit) != 0) {
    put_first(l3, find(l3, l3_.ways, line), line);
    return;
  }
  const Tag gone = way(l3[l3_.ways - 1]);
  if (gone != kFree) {
    Held& last = directory_[gone];
    last.state &= ~chiplet.bit;
    if (last.cores == 0 && last.state == Held::kDirty) {
      add(row[kWritten + home_[gone >> (kMibShift - kLineShift)]], 1);
      last.state = 0;
    }
  }
  put_first(l3, l3_.ways - 1, line);
  held.state |= chiplet.bit;
}

// Takes the copies of all others away, for a store. How long the farthest takes.
std::uint32_t Caches::take_away(const Core& core, Tag line, Held& held, std::uint64_t* row) {
  const Chiplet& chiplet = chiplets_[core.chiplet];
  std::uint32_t cycles = 0;
  for (std::uint64_t left = held.cores & ~core.bit; left != 0; left &= left - 1) {
    const Core& other = cores_[static_cast<unsigned>(std::countr_zero(left))];
    Tag* const l1 = l1_set(other, line);
    const std::uint32_t at = find(l1, l1_.ways, line << 1, kMayWrite);
    if (at < l1_.ways) remove(l1, l1_.ways, at);
    Tag* const l2 = l2_set(other, line);
    remove(l2, l2_.ways, find(l2, l2_.ways, line));
    add(row[kTakenAway], 1);
    cycles = std::max(cycles, latency_[distance(chiplet, other.chiplet)]);
  }
  for (std::uint64_t left = held.l3s(); left != 0; left &= left - 1) {
    const auto other = static_cast<unsigned>(std::countr_zero(left));
    Tag* const l3 = l3_set(chiplets_[other], line);
    remove(l3, l3_.ways, find(l3, l3_.ways, line));
    cycles = std::max(cycles, latency_[distance(chiplet, other)]);
  }
  held.cores &= core.bit;
  held.state &= Held::kDirty;
  return cycles;
}

// The line gets a copy elsewhere. At most one core may write to it.
void Caches::forbid_writing(std::uint64_t cores, Tag line) {
  if (!std::has_single_bit(cores)) return;
  Tag* const l1 = l1_set(cores_[static_cast<unsigned>(std::countr_zero(cores))], line);
  const std::uint32_t at = find(l1, l1_.ways, line << 1, kMayWrite);
  if (at < l1_.ways) set_way(l1[at], line << 1);
}

}  // namespace atl::cachesim
