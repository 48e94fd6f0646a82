// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-or-later
// How long lines wait for what all CPUs share: the links of the chiplets to their nodes, in and
// out, the memory of each node, and the way from each package to each other.
//
// Nothing is counted per access, since the CPUs' rows say what passed where. Time is divided into
// windows. At the end of a window each CPU reports what its rows grew by, and the last one settles
// how long each line waits in the next. So a wait is a window late.
//
// With s the cycles that a resource takes for a line, r how busy it was in the window (lines * s /
// cycles of the window), n how many CPUs used it, and w the wait in that window, the next wait is
// the longer of
//
//   (r / 2 * s + r * w) * (n - 1) / n   A line that comes finds one in service with probability r,
//                           half done, and r * w / s that wait before it; its own CPU has none
//                           there. (The arrival theorem of closed queues: Reiser and Lavenberg,
//                           J. ACM 27(2), 1980; for many CPUs it settles at the wait of M/D/1.)
//   w + n * s * (1 - 1 / r)  What makes r one, if a CPU waits for each of its lines: of n CPUs that
//                           take t + w cycles for a line, r is n * s / (t + w).
//
// n is the sum of the CPUs' lines, squared, over the sum of their squares, so that a CPU with few
// lines counts little.
//
// A line waits as long as at the busiest of what it passes: queues in a row do not add up, since
// what comes out of one is spread out.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "counters.hpp"
#include "machine.hpp"

namespace atl::cachesim {

class Traffic {
 public:
  // Cycles of a window; a longer quantum is a window.
  static constexpr std::uint64_t kWindow = 10'000;

  explicit Traffic(const Machine& machine);

  // How long a line waits that a CPU of `chiplet` gets, from a node's memory or another chiplet.
  [[nodiscard]] std::uint32_t wait_from_memory(unsigned chiplet, unsigned node) const {
    return std::max({wait(into(chiplet)), wait(memory(node)),
                     wait(way(package_of_node_[node], package_of_chiplet_[chiplet]))});
  }
  [[nodiscard]] std::uint32_t wait_from_chiplet(unsigned chiplet, unsigned from) const {
    return std::max({wait(into(chiplet)), wait(out_of(from)),
                     wait(way(package_of_chiplet_[from], package_of_chiplet_[chiplet]))});
  }

  // A CPU's time is `now`, and that is what it has counted. For its thread, before it waits for the
  // others (Clock::spend).
  void report(unsigned cpu, std::uint64_t* const (&rows)[kModes], std::uint64_t now);
  // All running CPUs have come to `now` and have reported. For any thread.
  void settle(std::uint64_t now);

  // Nothing is busy, and what was reported is forgotten. No report may be under way.
  void clear();

 private:
  struct alignas(64) Resource {
    double service = 0;                        // cycles for a line; 0: no limit
    std::atomic<double> lines{0}, squares{0};  // of the window's reports
    std::atomic<double> wait{0};
  };
  struct alignas(64) Cpu {
    std::uint64_t windows = 0;  // that it has reported
    unsigned chiplet = 0;
    std::vector<std::uint64_t> reported;  // of its columns, both modes together
    std::vector<std::uint64_t> lines;     // of each resource, in this report
  };

  [[nodiscard]] unsigned into(unsigned chiplet) const { return chiplet; }
  [[nodiscard]] unsigned out_of(unsigned chiplet) const { return chiplets_ + chiplet; }
  [[nodiscard]] unsigned memory(unsigned node) const { return 2 * chiplets_ + node; }
  [[nodiscard]] unsigned way(unsigned from, unsigned to) const {
    return 2 * chiplets_ + nodes_ + from * packages_ + to;
  }
  // Relaxed: an older wait is as good.
  [[nodiscard]] std::uint32_t wait(unsigned resource) const {
    return waits_[resource].load(std::memory_order_relaxed);
  }

  unsigned chiplets_, nodes_, packages_;
  std::vector<unsigned> package_of_node_, package_of_chiplet_;
  std::uint64_t window_;
  bool limited_ = false;
  std::vector<Cpu> cpus_;
  std::vector<Resource> resources_;
  std::unique_ptr<std::atomic<std::uint32_t>[]> waits_;  // of the resources, in whole cycles
  alignas(64) std::atomic<std::uint64_t> settled_{0};    // windows
};

}  // namespace atl::cachesim
