// Made-up fills, which the CPU does not count, to test what the controller does with the threads.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "atoll/runtime/controller.hpp"

namespace guest {

// While work wants cache, fewer chiplets make it more expensive; while it wants nearness, more do.
// At its goal fills from memory and from other chiplets cost the same.
class MadeUpFills {
 public:
  enum class Wants { cache, nearness };

  explicit MadeUpFills(int workers) : of_(static_cast<std::size_t>(workers)) {}

  void want(Wants wants, int goal) {
    wants_ = wants;
    goal_ = goal;
  }
  void moved_to(int chiplets) { chiplets_ = chiplets; }

  void worked(int worker, std::chrono::nanoseconds busy) {
    const int chiplets = chiplets_;
    const bool cache = wants_ == Wants::cache;
    // Of the time. Halves with each step, so that a loaded machine does not hide that it pays.
    const double share = 1.0 / (1 << (cache ? chiplets - kFewest : kMost - chiplets));
    const double memory = chiplets == goal_ ? share / 2 : cache ? share : 0;
    const atl::FillLatency latency;
    const auto fills = [&](double part, double fill_ns) {
      return static_cast<std::uint64_t>(part * static_cast<double>(busy.count()) /
                                        (fill_ns - latency.local_chiplet_ns));
    };
    auto& own = of_[static_cast<std::size_t>(worker)];
    own.memory += fills(memory, latency.memory_ns);
    own.remote_chiplet += fills(share - memory, latency.remote_chiplet_ns);
  }

  atl::Fills read(int worker) const {
    const auto& own = of_[static_cast<std::size_t>(worker)];
    return {.local_chiplet = 0,
            .remote_chiplet = own.remote_chiplet,
            .remote_node = 0,
            .memory = own.memory};
  }

  static constexpr int kFewest = 4, kMost = 8;  // chiplets for 8 threads, 2 cores each

 private:
  struct Own {
    std::atomic<std::uint64_t> memory{0}, remote_chiplet{0};
  };
  std::vector<Own> of_;
  std::atomic<Wants> wants_{Wants::cache};
  std::atomic<int> goal_{kFewest};
  std::atomic<int> chiplets_{kFewest};
};

// The default approach, and why it last moved. The fills follow its decision at once: if they
// waited for the round of work that runs meanwhile, a slow machine would make it go too far.
class TellsFills final : public atl::Approach {
 public:
  explicit TellsFills(MadeUpFills& fills) : fills_(fills) {}

  std::string name() const override { return "tells-fills"; }
  std::string why() const {
    const std::lock_guard lock(mutex_);
    return why_;
  }

 protected:
  atl::Decision decide(const atl::Sample& sample) override {
    atl::Decision decision = approach_->step(sample);
    if (decision.spread != sample.spread) {
      fills_.moved_to(decision.spread);
      const std::lock_guard lock(mutex_);
      why_ = decision.reason;
    }
    return decision;
  }

 private:
  MadeUpFills& fills_;
  std::unique_ptr<atl::Approach> approach_ = atl::approach_by_name(atl::kDefaultApproach);
  mutable std::mutex mutex_;
  std::string why_;
};

}  // namespace guest
