#include "arcas_2025.hpp"

#include "update_location.hpp"

namespace atl::runtime {

std::string Arcas2025::name() const {
  std::string name = options_.printed_location ? "arcas-2025-printed" : "arcas-2025";
  const bool own_timer = options_.scheduler_timer_ms != kSchedulerTimerMs;
  if (own_timer || options_.rmt_chip_access_rate != kRmtChipAccessRate) {
    name += ":" + std::to_string(options_.rmt_chip_access_rate);
  }
  return own_timer ? name + ":" + std::to_string(options_.scheduler_timer_ms) : name;
}

std::vector<int> Arcas2025::map(const Places& places, std::span<const int> now, int spread) const {
  if (!options_.printed_location) return {};
  return update_location(places, now, spread);
}

Decision Arcas2025::decide(const Sample& sample) {
  if (!sample.fills.remote_chiplet) return {sample.spread, "no counter of fills between chiplets"};
  const double timer_s = options_.scheduler_timer_ms / 1e3;
  elapsed_s_ += sample.elapsed_s;
  counter_ += static_cast<double>(*sample.fills.remote_chiplet) +
              static_cast<double>(sample.fills.remote_node.value_or(0));
  if (elapsed_s_ < timer_s) return {sample.spread, "before SCHEDULER_TIMER"};  // line 4

  const double rate = counter_ * timer_s / elapsed_s_;  // line 6
  elapsed_s_ = 0;                                       // line 17
  counter_ = 0;                                         // line 18
  if (rate >= options_.rmt_chip_access_rate) {          // line 7
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
