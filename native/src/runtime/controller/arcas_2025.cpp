#include "arcas_2025.hpp"

namespace atl::runtime {

Decision Arcas2025::decide(const Sample& sample) {
  if (!sample.fills.remote_chiplet) return {sample.spread, "no counter of fills between chiplets"};
  elapsed_s_ += sample.elapsed_s;
  counter_ += static_cast<double>(*sample.fills.remote_chiplet) +
              static_cast<double>(sample.fills.remote_node.value_or(0));
  if (elapsed_s_ < scheduler_timer_s_) return {sample.spread, "before SCHEDULER_TIMER"};  // line 4

  const double rate = counter_ * scheduler_timer_s_ / elapsed_s_;  // line 6
  elapsed_s_ = 0;                                                  // line 17
  counter_ = 0;                                                    // line 18
  if (rate >= kRmtChipAccessRate) {                                // line 7
    if (sample.spread < sample.max_spread) {
      return {sample.spread + 1, "rate at or above RMT_CHIP_ACCESS_RATE: spread"};
    }
    return {sample.spread, "rate at or above RMT_CHIP_ACCESS_RATE: all chiplets in use"};
  }
  if (sample.spread > sample.min_spread) {  // line 12, with the threads' own bound for 1
    return {sample.spread - 1, "rate below RMT_CHIP_ACCESS_RATE: compact"};
  }
  return {sample.spread, "rate below RMT_CHIP_ACCESS_RATE: as compact as the threads fit"};
}

}  // namespace atl::runtime
