// Parses what read(2) returns for a group of perf events and turns it into fills. Pure.
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

// Empty if these are not the words of a group of `events` events.
[[nodiscard]] std::optional<GroupReading> decode_group(std::span<const std::uint64_t> words,
                                                       std::size_t events);

// All groups of a table, read one after another.
using FillReading = std::array<GroupReading, kMaxFillGroups>;

// The fills between two readings of one thread. If a group was on the PMU for part of the time, its
// counts are scaled to all of it, and `running_share` is the smallest such part; the sources of a
// group that never ran, and those without an event, are empty.
[[nodiscard]] FillCounts fills_between(const FillTable& table, const FillReading& from,
                                       const FillReading& to);

// Adds up counts of the same table. A source that one of them lacks is empty in the sum; the share
// is the smaller one. An empty `sum` (share 0, no counts) takes the other's values.
void add_fills(FillCounts& sum, const FillCounts& more);

}  // namespace atl::runtime
