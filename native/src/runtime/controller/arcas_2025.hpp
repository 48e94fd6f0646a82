// Algorithm 1 of ARCAS ("Chiplet Scheduling Policy"), exactly as printed.
//
// The counter counts fills from other chiplets ("tracks the number of remote memory accesses
// between chiplets", section 4.2). Many of them make it spread, which causes more of them: as
// printed, it feeds itself. It is here for comparison; see docs/runtime-controller.md.
#pragma once

#include <string>

#include "atoll/runtime/controller.hpp"

namespace atl::runtime {

// Fills from other chiplets per SCHEDULER_TIMER, of all threads together (section 4.6).
inline constexpr double kRmtChipAccessRate = 300;
// The paper prints no value for SCHEDULER_TIMER.
inline constexpr double kSchedulerTimerS = 0.1;

class Arcas2025 final : public Approach {
 public:
  explicit Arcas2025(double scheduler_timer_s = kSchedulerTimerS)
      : scheduler_timer_s_(scheduler_timer_s) {}
  std::string name() const override { return "arcas-2025"; }
  bool needs_intervals() const override { return true; }

 protected:
  Decision decide(const Sample& sample) override;

 private:
  double scheduler_timer_s_;
  double elapsed_s_ = 0;  // since the last decision
  double counter_ = 0;    // fills from other chiplets since then
};

}  // namespace atl::runtime
