// The table of RandomAccess and its updates.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace atl::kernels {

inline constexpr std::size_t kLookAhead = 1024;  // updates that a worker may keep, by the rules

struct Table {
  std::uint64_t* entries;
  std::uint64_t mask;

  void prefetch(std::uint64_t value) const { __builtin_prefetch(entries + (value & mask), 1); }
  // Workers race, and an update may be lost: that is the benchmark. So nothing is ordered.
  void update(std::uint64_t value) const {
    const std::atomic_ref<std::uint64_t> entry(entries[value & mask]);
    entry.store(entry.load(std::memory_order_relaxed) ^ value, std::memory_order_relaxed);
  }
  void update_safely(std::uint64_t value) const {
    std::atomic_ref(entries[value & mask]).fetch_xor(value, std::memory_order_relaxed);
  }
};

// Of the sequence's numbers; the first is number 1.
struct Range {
  std::uint64_t first;
  std::uint64_t last;
};

}  // namespace atl::kernels
