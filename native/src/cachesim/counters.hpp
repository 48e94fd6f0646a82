// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-or-later
// What is counted: a row of 64-bit numbers for each CPU and mode (user, kernel). They only grow.
//
// A row has these columns, then for each chiplet the lines that came from its caches, then for
// each node those that came from its memory, then for each node those written back to it. So all
// else follows: fills by source from the CPU's place, and the bytes on a link are its lines x 64.
//
// A row has one writer, the CPU's thread, and any number of readers.
#pragma once

#include <atomic>
#include <cstdint>

#include "machine.hpp"

namespace atl::cachesim {

enum Column : unsigned {
  kInstructions,
  kLoads,  // of a line; an access to two lines counts twice
  kStores,
  kL2Hits,     // L1 did not have it
  kTakenAway,  // copies that other cores lost to this CPU's stores
  kStalls,     // cycles
  kFirstChiplet
};

enum Mode : unsigned { kUser, kKernel, kModes };

// Adds to a number that only this thread writes. Relaxed: a reader wants each number, and no order
// between numbers.
inline void add(std::uint64_t& number, std::uint64_t value) {
  std::atomic_ref<std::uint64_t> shared(number);
  shared.store(shared.load(std::memory_order_relaxed) + value, std::memory_order_relaxed);
}

// Where the columns of a row are.
struct Columns {
  explicit Columns(const Machine& machine)
      : memory(kFirstChiplet + machine.chiplets),
        written(memory + machine.nodes),
        all(written + machine.nodes) {}

  unsigned memory;   // of node 0
  unsigned written;  // of node 0
  unsigned all;
};

}  // namespace atl::cachesim
