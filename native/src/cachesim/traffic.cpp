// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-or-later
#include "traffic.hpp"

#include <cmath>

namespace atl::cachesim {
namespace {

constexpr double kLineBytes = 1 << kLineShift;
constexpr double kMostWait = 1'000'000;  // cycles

double service_of(std::uint32_t bytes_per_1000_cycles) {
  return bytes_per_1000_cycles == 0 ? 0 : kLineBytes * 1000 / bytes_per_1000_cycles;
}

double next_wait(double wait, double service, double busy, double cpus) {
  if (busy == 0) return 0;
  const double calm = (busy / 2 * service + busy * wait) * (cpus - 1) / cpus;
  const double full = wait + cpus * service * (1 - 1 / busy);
  return std::clamp(std::max(calm, full), 0.0, kMostWait);
}

}  // namespace

Traffic::Traffic(const Machine& machine)
    : chiplets_(machine.chiplets),
      nodes_(machine.nodes),
      packages_(*std::max_element(machine.package_of_node.begin(), machine.package_of_node.end()) +
                1),
      package_of_node_(machine.package_of_node),
      package_of_chiplet_(machine.chiplets),
      window_((kWindow + machine.quantum - 1) / machine.quantum * machine.quantum),
      limited_(std::any_of(std::begin(machine.bandwidth), std::end(machine.bandwidth),
                           [](std::uint32_t bytes) { return bytes != 0; })),
      cpus_(machine.cpus.size()),
      resources_(2 * chiplets_ + nodes_ + packages_ * packages_),
      waits_(new std::atomic<std::uint32_t>[resources_.size()]()) {
  for (unsigned chiplet = 0; chiplet < chiplets_; ++chiplet) {
    resources_[into(chiplet)].service = service_of(machine.bandwidth[kLink]);
    resources_[out_of(chiplet)].service = service_of(machine.bandwidth[kLink]);
  }
  for (unsigned node = 0; node < nodes_; ++node) {
    resources_[memory(node)].service = service_of(machine.bandwidth[kMemory]);
  }
  for (unsigned from = 0; from < packages_; ++from) {
    for (unsigned to = 0; to < packages_; ++to) {
      if (from != to)
        resources_[way(from, to)].service = service_of(machine.bandwidth[kInterconnect]);
    }
  }
  for (std::size_t at = 0; at < cpus_.size(); ++at) {
    const atl::cachesim::Cpu& place = machine.cpus[at];
    package_of_chiplet_[place.chiplet] = place.package;
    cpus_[at].chiplet = place.chiplet;
    cpus_[at].reported.resize(kColumns);
    cpus_[at].lines.resize(resources_.size());
  }
}

void Traffic::report(unsigned cpu, std::uint64_t* const (&rows)[kModes], std::uint64_t now) {
  Cpu& mine = cpus_[cpu];
  if (!limited_ || now / window_ == mine.windows) return;
  mine.windows = now / window_;
  const auto grown = [&](unsigned column) {
    const std::uint64_t counted = rows[kUser][column] + rows[kKernel][column];
    const std::uint64_t before = mine.reported[column];
    mine.reported[column] = counted;
    return counted - before;
  };
  std::fill(mine.lines.begin(), mine.lines.end(), 0);
  const unsigned own = package_of_chiplet_[mine.chiplet];
  for (unsigned from = 0; from < chiplets_; ++from) {
    if (from == mine.chiplet) continue;  // its own L3
    const std::uint64_t lines = grown(kFromChiplet + from);
    mine.lines[into(mine.chiplet)] += lines;
    mine.lines[out_of(from)] += lines;
    mine.lines[way(package_of_chiplet_[from], own)] += lines;
  }
  for (unsigned node = 0; node < nodes_; ++node) {
    const std::uint64_t lines = grown(kFromMemory + node), written = grown(kWritten + node);
    mine.lines[into(mine.chiplet)] += lines;
    mine.lines[out_of(mine.chiplet)] += written;
    mine.lines[memory(node)] += lines + written;
    mine.lines[way(package_of_node_[node], own)] += lines;
    mine.lines[way(own, package_of_node_[node])] += written;
  }
  // Relaxed: who settles has read this CPU's time of the clock, which it published since. Not whole
  // numbers, whose squares overflow if the guest writes to its rows.
  for (std::size_t at = 0; at < resources_.size(); ++at) {
    const auto lines = static_cast<double>(mine.lines[at]);
    if (lines == 0) continue;
    resources_[at].lines.fetch_add(lines, std::memory_order_relaxed);
    resources_[at].squares.fetch_add(lines * lines, std::memory_order_relaxed);
  }
}

// The exchange picks one CPU for a window. Relaxed: who settles the next one has waited for it in
// the clock.
void Traffic::settle(std::uint64_t now) {
  std::uint64_t settled = settled_.load(std::memory_order_relaxed);
  const std::uint64_t ended = now / window_;
  if (!limited_ || ended <= settled ||
      !settled_.compare_exchange_strong(settled, ended, std::memory_order_relaxed)) {
    return;
  }
  const auto cycles = static_cast<double>((ended - settled) * window_);
  for (std::size_t at = 0; at < resources_.size(); ++at) {
    Resource& one = resources_[at];
    const double lines = one.lines.exchange(0, std::memory_order_relaxed);
    const double squares = one.squares.exchange(0, std::memory_order_relaxed);
    if (one.service == 0) continue;
    const double busy = lines * one.service / cycles;
    const double wait = next_wait(one.wait.load(std::memory_order_relaxed), one.service, busy,
                                  lines == 0 ? 1 : lines * lines / squares);
    one.wait.store(wait, std::memory_order_relaxed);
    waits_[at].store(static_cast<std::uint32_t>(std::lround(wait)), std::memory_order_relaxed);
  }
}

void Traffic::clear() {
  for (std::size_t at = 0; at < resources_.size(); ++at) {
    resources_[at].lines.store(0, std::memory_order_relaxed);
    resources_[at].squares.store(0, std::memory_order_relaxed);
    resources_[at].wait.store(0, std::memory_order_relaxed);
    waits_[at].store(0, std::memory_order_relaxed);
  }
}

}  // namespace atl::cachesim
