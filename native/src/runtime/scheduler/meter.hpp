// A worker's work by type of task, for controllers without hardware counters: number and time.
//
// A type is the function that runs the job; a unit is a job that the loop ran or a fork that a join
// ran inside it. So a tree of forks counts equally, however thieves divided it. A job that still
// runs counts too, with its time and its forks so far. Only updated while something is steered.
//
// What it promises
//  - Each type has a cell of its own. The table grows on demand, and then forgets the types of
//    domains that no longer exist: its size follows the groups that exist at the same time.
//  - Sums of a type only rise, except that a forgotten type begins again at 0.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <vector>

namespace atl::runtime {

class Meter {
 public:
  // A type within a domain: the domain in the top 16 bits, as in words. Never 0.
  using Key = std::uint64_t;

  struct Sum {
    Key key = 0;
    std::uint64_t units = 0;
    std::uint64_t busy_ns = 0;
  };

  // The worker itself, around what its loop runs. `forks`: how many it has run inline so far.
  void begin(Key key, std::uint64_t forks, std::int64_t now_ns) {
    change([&] {
      running_.forks.store(forks, std::memory_order_release);
      running_.since_ns.store(now_ns, std::memory_order_release);
      running_.key.store(key, std::memory_order_release);
    });
  }
  // `exists(key)`: whether the key's domain exists. Without memory for a larger table, all types
  // are forgotten.
  template <class Exists>
  void end(std::uint64_t forks, std::int64_t now_ns, Exists&& exists) {
    Cell& cell = find(running_.key.load(std::memory_order_relaxed), exists);
    const std::uint64_t more = 1 + forks - running_.forks.load(std::memory_order_relaxed);
    const std::int64_t busy = now_ns - running_.since_ns.load(std::memory_order_relaxed);
    change([&] {
      running_.key.store(0, std::memory_order_release);
      cell.units.store(cell.units.load(std::memory_order_relaxed) + more,
                       std::memory_order_release);
      cell.busy_ns.store(
          cell.busy_ns.load(std::memory_order_relaxed) + static_cast<std::uint64_t>(busy),
          std::memory_order_release);
    });
  }
  bool running() const { return running_.key.load(std::memory_order_relaxed) != 0; }

  // Any thread: appends the sums of every cell in use, and of what runs now, so that a key may come
  // twice. `forks()`: how many forks the worker has run inline by now.
  template <class Forks>
  void read(std::int64_t now_ns, Forks&& forks, std::vector<Sum>& sums) const {
    const std::lock_guard lock(table_);
    const std::size_t begin = sums.size();
    // A worker that ends jobs faster than this reads has no long one. Then what runs is left out,
    // or a job would be counted as running and as ended.
    constexpr int kTries = 4;
    for (int tries = 0; tries < kTries; ++tries) {
      sums.resize(begin);
      // A sequence lock: who reads a later value of anything (acquire) sees a later version below.
      const std::uint64_t version = version_.load(std::memory_order_acquire);
      const Key key = running_.key.load(std::memory_order_acquire);
      const std::int64_t busy = now_ns - running_.since_ns.load(std::memory_order_acquire);
      const std::uint64_t before = running_.forks.load(std::memory_order_acquire);
      const std::uint64_t now = forks();
      for (std::size_t at = 0; at < size_; ++at) {
        const Key used = cells_[at].key.load(std::memory_order_acquire);
        if (used == 0) continue;
        sums.push_back({used, cells_[at].units.load(std::memory_order_acquire),
                        cells_[at].busy_ns.load(std::memory_order_acquire)});
      }
      if (version % 2 != 0 || version_.load(std::memory_order_relaxed) != version) continue;
      if (key != 0 && busy > 0) {
        sums.push_back({key, now - std::min(now, before), static_cast<std::uint64_t>(busy)});
      }
      return;
    }
  }

  // Cells, used or not.
  std::size_t size() const { return size_; }

 private:
  struct Cell {
    std::atomic<Key> key{0};
    std::atomic<std::uint64_t> units{0};
    std::atomic<std::uint64_t> busy_ns{0};
  };
  static constexpr std::size_t kFirst = 128;

  template <class F>
  void change(F&& f) {
    const std::uint64_t version = version_.load(std::memory_order_relaxed);
    version_.store(version + 1, std::memory_order_relaxed);  // before the stores, which release
    f();
    version_.store(version + 2, std::memory_order_release);
  }

  static Cell& probe(Cell* cells, std::size_t size, Key key) {
    std::size_t at = (key * 0x9e3779b97f4a7c15) >> 32 & (size - 1);
    for (;; at = (at + 1) & (size - 1)) {
      const Key found = cells[at].key.load(std::memory_order_relaxed);
      if (found == key || found == 0) return cells[at];
    }
  }

  template <class Exists>
  Cell& find(Key key, Exists& exists) {
    Cell* cell = &probe(cells_.get(), size_, key);
    if (cell->key.load(std::memory_order_relaxed) == key) return *cell;
    if (2 * (used_ + 1) > size_) {
      rebuild(exists);
      cell = &probe(cells_.get(), size_, key);
    }
    ++used_;
    cell->key.store(key, std::memory_order_release);
    return *cell;
  }

  // The worker alone replaces the table, so it reads it without the lock.
  template <class Exists>
  void rebuild(Exists& exists) {
    std::size_t kept = 0;
    for (std::size_t at = 0; at < size_; ++at) {
      const Key key = cells_[at].key.load(std::memory_order_relaxed);
      if (key != 0 && exists(key)) ++kept;
    }
    std::size_t size = kFirst;
    while (size < 4 * kept) size *= 2;
    std::unique_ptr<Cell[]> cells(new (std::nothrow) Cell[size]);
    const std::lock_guard lock(table_);
    used_ = 0;
    if (cells == nullptr) {
      for (std::size_t at = 0; at < size_; ++at) {
        cells_[at].key.store(0, std::memory_order_relaxed);
        cells_[at].units.store(0, std::memory_order_relaxed);
        cells_[at].busy_ns.store(0, std::memory_order_relaxed);
      }
      return;
    }
    for (std::size_t at = 0; at < size_; ++at) {
      const Key key = cells_[at].key.load(std::memory_order_relaxed);
      if (key == 0 || !exists(key) || 2 * used_ >= size) continue;
      Cell& cell = probe(cells.get(), size, key);
      cell.key.store(key, std::memory_order_relaxed);
      cell.units.store(cells_[at].units.load(std::memory_order_relaxed), std::memory_order_relaxed);
      cell.busy_ns.store(cells_[at].busy_ns.load(std::memory_order_relaxed),
                         std::memory_order_relaxed);
      ++used_;
    }
    cells_ = std::move(cells);
    size_ = size;
  }

  struct Running {
    std::atomic<Key> key{0};  // 0: nothing
    std::atomic<std::uint64_t> forks{0};
    std::atomic<std::int64_t> since_ns{0};
  };

  std::atomic<std::uint64_t> version_{0};  // odd: in a change
  Running running_;
  std::unique_ptr<Cell[]> cells_ = std::make_unique<Cell[]>(kFirst);
  std::size_t size_ = kFirst;
  std::size_t used_ = 0;
  mutable std::mutex table_;  // held by readers, and by the worker while it replaces the table
};

}  // namespace atl::runtime
