#include "atoll/runtime/barrier.hpp"

#include <algorithm>
#include <limits>
#include <string>

#include "atoll/runtime/places.hpp"
#include "scheduler/worker.hpp"
#include "spin.hpp"
#include "wait_on.hpp"

namespace atl {

namespace {

// Number of parties that share a leaf: about the cores of a chiplet. With up to two chiplets'
// worth, one line is as good as a tree.
constexpr std::uint32_t kPartiesPerLeaf = 8;
constexpr std::uint32_t kFewParties = 16;
// 1.8 us on CPUs with a long pause (Skylake and later).
constexpr int kSpins = 40;

}  // namespace

// A counter of arrivals that admits only the first `size`.
struct alignas(128) Barrier::Leaf {
  std::atomic<std::uint32_t> arrived{0};
  std::uint32_t size = 0;
};

Barrier::Barrier(std::ptrdiff_t parties, std::function<void()> completion)
    : left_(static_cast<std::uint32_t>(parties)),
      parties_(static_cast<std::uint32_t>(parties)),
      completion_(std::move(completion)) {
  if (parties < 1 || parties > std::numeric_limits<std::int32_t>::max()) {
    throw RuntimeFault("a Barrier of " + std::to_string(parties) + " parties: give 1 to 2^31 - 1");
  }
  if (parties_ <= kFewParties) return;
  leaf_count_ = (parties_ + kPartiesPerLeaf - 1) / kPartiesPerLeaf;
  leaves_ = std::make_unique<Leaf[]>(leaf_count_);
  for (std::uint32_t at = 0; at < leaf_count_; ++at) {
    leaves_[at].size = parties_ / leaf_count_ + (at < parties_ % leaf_count_ ? 1 : 0);
  }
  left_.store(leaf_count_, std::memory_order_relaxed);
}

Barrier::~Barrier() = default;

// Leaves admit exactly their size, so all are full when all parties have arrived, in any order. A
// party that finds a full leaf tries the next; evenly spread parties find room in their own.
void Barrier::arrive_in_tree(std::uint32_t phase) {
  std::uint32_t at = 0;
  if (const runtime::Worker* const worker = runtime::Worker::here()) {
    at = static_cast<std::uint32_t>(std::uint64_t{leaf_count_} *
                                    static_cast<std::uint32_t>(worker->rank) /
                                    static_cast<std::uint32_t>(worker->team.size()));
  }
  for (;; at = at + 1 == leaf_count_ ? 0 : at + 1) {
    Leaf& leaf = leaves_[at];
    // The load avoids writes to a full leaf, and keeps its count from reaching 2^32.
    if (leaf.arrived.load(std::memory_order_relaxed) >= leaf.size) continue;
    const std::uint32_t arrived = leaf.arrived.fetch_add(1, std::memory_order_acq_rel) + 1;
    if (arrived > leaf.size) continue;
    if (arrived < leaf.size) return wait(phase, parties_);
    break;
  }
  const std::uint32_t missing = left_.fetch_sub(1, std::memory_order_acq_rel) - 1;
  if (missing > 0) return wait(phase, parties_);
  left_.store(leaf_count_, std::memory_order_relaxed);
  for (std::uint32_t each = 0; each < leaf_count_; ++each) {
    leaves_[each].arrived.store(0, std::memory_order_relaxed);
  }
  end_phase(phase);
}

void Barrier::wait(std::uint32_t phase, std::uint32_t missing) {
  // Missing parties may be among the tasks in this worker's own deque.
  const runtime::Worker* const worker = runtime::Worker::here();
  if (static_cast<int>(missing) <= runtime::others_running() &&
      (worker == nullptr || worker->deque.looks_empty())) {
    for (int spin = 0; spin < kSpins; ++spin) {
      if ((phase_.load(std::memory_order_acquire) & ~kWaited) != phase) return;
      runtime::pause();
    }
  }
  std::uint32_t now = phase_.load(std::memory_order_acquire);
  while ((now & ~kWaited) == phase) {
    if (now == phase &&
        !phase_.compare_exchange_weak(now, phase | kWaited, std::memory_order_acquire)) {
      continue;
    }
    runtime::wait_on(phase_, phase | kWaited);
    now = phase_.load(std::memory_order_acquire);
  }
}

void Barrier::complete() noexcept { completion_(); }

void Barrier::wake(const void* phase) { runtime::wake_all(phase); }

}  // namespace atl
