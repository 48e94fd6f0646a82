#include "working_set.hpp"

#include <algorithm>

namespace atl::runtime {

namespace {

constexpr std::uint64_t kLineBytes = 64;
// An L3 counts as full from 15/16 on: addresses do not use all of its sets alike, and others use a
// little of it.
constexpr std::uint64_t kFullOf = 16;
// If fewer of the lines come from memory, the set fits: some are always new.
constexpr std::uint64_t kFitsFrom = 16;

}  // namespace

std::optional<std::uint64_t> working_set_by_occupancy(std::span<const L3Profile> l3s,
                                                      std::span<const int> in_use) {
  std::uint64_t bytes = 0;
  for (const int number : in_use) {
    const auto found = std::ranges::find(l3s, number, &L3Profile::l3);
    if (found == l3s.end() || !found->occupancy_bytes) return std::nullopt;
    bytes += *found->occupancy_bytes;
  }
  if (in_use.empty()) return std::nullopt;
  return bytes + bytes / (kFullOf - 1);
}

std::optional<std::uint64_t> working_set_by_fills(const Fills& fills, int spread,
                                                  std::uint64_t chiplet_l3_bytes) {
  if (!fills.local_chiplet || !fills.memory || chiplet_l3_bytes == 0) return std::nullopt;
  const std::uint64_t found =
      *fills.local_chiplet + fills.remote_chiplet.value_or(0) + fills.remote_node.value_or(0);
  const std::uint64_t all = found + *fills.memory;
  const auto l3s = static_cast<double>(chiplet_l3_bytes) * spread;
  const double loaded = static_cast<double>(all) * static_cast<double>(kLineBytes);
  double set = loaded;
  if (*fills.memory <= all / kFitsFrom) {
    set = std::min(loaded, l3s);
  } else if (found > 0) {
    set = std::min(loaded, l3s * static_cast<double>(all) / static_cast<double>(found));
  }
  return static_cast<std::uint64_t>(set);
}

void RecentFills::add(const Sample& sample) {
  const bool settled = spread_ == 0 || spread_ == sample.spread;
  spread_ = sample.spread;
  if (!settled) return;
  sets_[next_] = working_set_by_fills(sample.fills, sample.spread, sample.chiplet_l3_bytes);
  next_ = (next_ + 1) % sets_.size();
}

std::optional<std::uint64_t> RecentFills::bytes() const { return *std::ranges::max_element(sets_); }

}  // namespace atl::runtime

namespace atl {

std::string_view working_set_source_name(WorkingSetSource source) {
  constexpr std::array<std::string_view, 3> kNames = {"given", "resctrl", "fills"};
  return kNames.at(static_cast<std::size_t>(source));
}

}  // namespace atl
