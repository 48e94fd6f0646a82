// What read(2) gives for a group of perf events, taken apart and turned into fills. Pure.
//
// The layout is perf_event_open(2)'s for PERF_FORMAT_GROUP with both times: the number of events,
// the ns that the group was enabled, the ns that it was on the PMU, and a value for each event in
// the order in which they were opened.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "events/fill_table.hpp"

namespace atl::runtime {

struct GroupReading {
  std::uint64_t enabled_ns = 0;
  std::uint64_t running_ns = 0;
  std::array<std::uint64_t, kMaxGroupEvents> values{};
};

inline constexpr std::size_t kGroupWords = 3 + kMaxGroupEvents;

// Nothing, if these are not the words of a group of `events` events.
[[nodiscard]] std::optional<GroupReading> decode_group(std::span<const std::uint64_t> words,
                                                       std::size_t events);

// All groups of a table, read one after another.
using FillReading = std::array<GroupReading, kMaxFillGroups>;

// The fills between two readings of one thread. Where a group was on the PMU for a part of the
// time only, its counts are scaled to all of it, and `running_share` is the smallest such part;
// the sources of a group that never ran are empty. Sources without an event are empty.
[[nodiscard]] FillCounts fills_between(const FillTable& table, const FillReading& from,
                                       const FillReading& to);

// Adds counts of the same table up. A source that one of them lacks is lacking in the sum; the
// share is the smaller one. An empty `sum` (share 0, no counts) takes what comes.
void add_fills(FillCounts& sum, const FillCounts& more);

}  // namespace atl::runtime
