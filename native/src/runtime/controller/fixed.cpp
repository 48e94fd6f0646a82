#include "fixed.hpp"

#include <algorithm>
#include <cstdint>

namespace atl::runtime {

Decision LocationCentric::decide(const Sample& sample) {
  return {sample.min_spread, "the fewest chiplets that hold the threads"};
}

Decision CacheSizeCentric::choose(const Sample& sample) {
  if (!sample.working_set_bytes || sample.chiplet_l3_bytes == 0) {
    return {sample.spread, "working set or L3 size not known"};
  }
  const std::uint64_t set = *sample.working_set_bytes;
  const std::uint64_t l3 = sample.chiplet_l3_bytes;
  const std::uint64_t chiplets = set / l3 + (set % l3 == 0 ? 0 : 1);
  // Bounded before it is narrowed: a set of 2^63 bytes would not fit an int.
  const auto most = static_cast<std::uint64_t>(sample.max_spread);
  return {static_cast<int>(std::min(chiplets, most)),
          "the fewest chiplets whose L3 holds the working set of " + std::to_string(set >> 20) +
              " MiB (" + std::string(working_set_source_name(sample.working_set_source)) + ")"};
}

Decision StaticLocal::decide(const Sample& sample) {
  if (!spread_) spread_ = sample.min_spread;
  return {*spread_, "static"};
}

Decision StaticDistributed::decide(const Sample& sample) {
  if (!spread_) spread_ = sample.max_spread;
  return {*spread_, "static"};
}

Decision StaticSpread::decide(const Sample&) { return {spread_, "static"}; }

}  // namespace atl::runtime
