// A worker's work by type of task, for controllers without hardware counters: number and time.
//
// A type is the function that runs the job; a unit is a job that the loop ran or a fork that a join
// ran inside it. So a tree of forks counts equally, however thieves divided it. Only updated while
// something is steered.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "atoll/runtime/worker_counts.hpp"

namespace atl::runtime {

class Meter {
 public:
  // A type within a domain: the domain in the top 16 bits, as in words.
  using Key = std::uint64_t;

  // 128 types at once; further ones share the last cell of their probe path and so its rates.
  static constexpr std::size_t kCells = 128;

  struct Cell {
    std::atomic<Key> key{0};
    detail::OwnCount units;
    detail::OwnCount busy_ns;
  };

  // The worker itself.
  void add(Key key, std::uint64_t units, std::uint64_t busy_ns) {
    Cell& cell = find(key);
    cell.units.add(units);
    cell.busy_ns.add(busy_ns);
  }

  // Any thread: calls f(key, units, busy_ns) for every cell in use; sums since the beginning.
  template <class F>
  void read(F&& f) const {
    for (const Cell& cell : cells_) {
      const Key key = cell.key.load(std::memory_order_acquire);
      if (key != 0) f(key, cell.units.read(), cell.busy_ns.read());
    }
  }

 private:
  Cell& find(Key key) {
    std::size_t at = (key * 0x9e3779b97f4a7c15) >> 57;
    static_assert(kCells == 128);
    for (std::size_t steps = 0;; ++steps, at = (at + 1) % kCells) {
      Cell& cell = cells_[at];
      const Key found = cell.key.load(std::memory_order_relaxed);
      if (found == key || steps == 8) return cell;
      if (found == 0) {
        cell.key.store(key, std::memory_order_release);
        return cell;
      }
    }
  }

  std::array<Cell, kCells> cells_;
};

}  // namespace atl::runtime
