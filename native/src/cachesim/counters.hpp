// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-or-later
// What is counted: a row of 64-bit numbers for each CPU and mode (user, kernel). They only grow,
// and do not overflow: at a billion a second they last for 580 years.
//
// All else follows: fills by source from the CPU's place, the bytes on a link from its lines.
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
  kL2Hits,                                     // L1 did not have it
  kTakenAway,                                  // copies that other cores lost to this CPU's stores
  kStalls,                                     // cycles
  kQueued,                                     // of them, waiting for a busy link or memory
  kFromChiplet,                                // of each chiplet: lines that came from its caches
  kFromMemory = kFromChiplet + kMostChiplets,  // of each node: lines that came from its memory
  kWritten = kFromMemory + kMostNodes,         // of each node: lines written back to it
  kColumns = kWritten + kMostNodes
};

enum Mode : unsigned { kUser, kKernel, kModes };

// Rows of different CPUs share no line of the host.
struct alignas(64) Row {
  std::uint64_t columns[kColumns];
};

// Adds to a number that only this thread writes. Relaxed: a reader wants each number, and no order
// between numbers.
inline void add(std::uint64_t& number, std::uint64_t value) {
  std::atomic_ref<std::uint64_t> shared(number);
  shared.store(shared.load(std::memory_order_relaxed) + value, std::memory_order_relaxed);
}

}  // namespace atl::cachesim
