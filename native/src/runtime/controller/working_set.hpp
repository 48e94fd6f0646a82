// The working set of a group of tasks, measured: from what its L3 caches hold (resctrl), or from
// what its cores load (fills). For approaches that go by it (Approach::wants_working_set), where
// the user gave none. Pure.
//
// Neither sees what is used again, so both are estimates with a known side:
//  - Occupancy is what lies in the caches. It cannot exceed them: a set that fills its caches is
//    taken for a little more than they hold, so that it gets one more at a time until it fits.
//    Data that several chiplets read counts once for each, and old data until something evicts it.
//  - Fills say how often a line that the core lacks is found in an L3. If lines of the set are
//    equally likely to be used next, that share is (L3s in use) / (set), as in the model of
//    independent references (King 1971; Che et al. 2002 for LRU): the set is L3s / share. A scan in
//    order finds nothing until all of it fits and then everything. The set cannot be larger than
//    the lines that were loaded.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "atoll/runtime/controller.hpp"
#include "atoll/runtime/profile.hpp"

namespace atl::runtime {

// `in_use`: resctrl's numbers of the L3s under the group's workers; others may still hold what the
// workers have left there. Empty if one of them is not monitored, or none is in use.
[[nodiscard]] std::optional<std::uint64_t> working_set_by_occupancy(std::span<const L3Profile> l3s,
                                                                    std::span<const int> in_use);

// Of one interval, in which `spread` L3s were in use. Empty without fills from L3 and from memory,
// or if the size of an L3 is not known.
[[nodiscard]] std::optional<std::uint64_t> working_set_by_fills(const Fills& fills, int spread,
                                                                std::uint64_t chiplet_l3_bytes);

// The latest intervals of a group. The set is the largest of theirs: an interval in which the group
// did little says little.
class RecentFills {
 public:
  // Leaves out the first interval after a change of spread, in which caches are filled again.
  void add(const Sample& sample);
  [[nodiscard]] std::optional<std::uint64_t> bytes() const;

 private:
  std::array<std::optional<std::uint64_t>, 8> sets_{};
  std::size_t next_ = 0;
  int spread_ = 0;  // of the last sample
};

}  // namespace atl::runtime
