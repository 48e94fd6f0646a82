// Algorithm 1 of ARCAS ("Chiplet Scheduling Policy"), exactly as printed; and with algorithm 2 as
// printed (update_location.hpp), instead of our mapping, if it is called `arcas-2025-printed`.
//
// The counter counts fills from other chiplets ("tracks the number of remote memory accesses
// between chiplets", section 4.2). Many of them make it spread, which causes more of them: as
// printed, it feeds itself. It is here for comparison; see docs/runtime-controller.md.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "atoll/runtime/controller.hpp"

namespace atl::runtime {

// Fills from other chiplets per SCHEDULER_TIMER, of all threads together (section 4.6). The paper
// varies it ("sensitivity analysis") without printing the other values.
inline constexpr int kRmtChipAccessRate = 300;
// The paper prints no value for SCHEDULER_TIMER.
inline constexpr int kSchedulerTimerMs = 100;

struct ArcasOptions {
  int scheduler_timer_ms = kSchedulerTimerMs;
  int rmt_chip_access_rate = kRmtChipAccessRate;
  bool printed_location = false;
};

class Arcas2025 final : public Approach {
 public:
  explicit Arcas2025(const ArcasOptions& options = {}) : options_(options) {}
  std::string name() const override;
  std::vector<int> map(const Places& places, std::span<const int> now, int spread) const override;
  bool needs_intervals() const override { return true; }

 protected:
  Decision decide(const Sample& sample) override;

 private:
  const ArcasOptions options_;
  double elapsed_s_ = 0;  // since the last decision
  double counter_ = 0;    // fills from other chiplets since then
};

}  // namespace atl::runtime
