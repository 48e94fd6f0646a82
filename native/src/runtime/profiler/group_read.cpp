#include "group_read.hpp"

#include <algorithm>
#include <cmath>

namespace atl::runtime {

std::optional<GroupReading> decode_group(std::span<const std::uint64_t> words, std::size_t events) {
  if (words.size() != 3 + events || events > kMaxGroupEvents || words[0] != events) {
    return std::nullopt;
  }
  GroupReading reading;
  reading.enabled_ns = words[1];
  reading.running_ns = words[2];
  std::copy_n(words.begin() + 3, events, reading.values.begin());
  return reading;
}

FillCounts fills_between(const FillTable& table, const FillReading& from, const FillReading& to) {
  FillCounts fills;
  double smallest_share = 1;
  std::array<bool, kFillSources> incomplete{};  // an event of the source did not run
  std::array<std::size_t, kMaxFillGroups> place{};
  for (const FillEvent& event : table.events) {
    const GroupReading& before = from[event.group];
    const GroupReading& after = to[event.group];
    const std::size_t at = place[event.group]++;
    const auto enabled = static_cast<double>(after.enabled_ns - before.enabled_ns);
    const auto running = static_cast<double>(after.running_ns - before.running_ns);
    if (running <= 0) {
      incomplete[static_cast<std::size_t>(event.source)] = true;
      smallest_share = 0;
      continue;
    }
    // The kernel's two times may differ by a few ns though the group ran all along.
    const double share = std::min(1.0, running / enabled);
    const std::uint64_t count = after.values[at] - before.values[at];
    const std::uint64_t scaled =
        share > 0.999
            ? count
            : static_cast<std::uint64_t>(std::llround(static_cast<double>(count) / share));
    std::optional<std::uint64_t>& source = fills.of(event.source);
    source = source.value_or(0) + scaled;
    smallest_share = std::min(smallest_share, share);
  }
  for (std::size_t i = 0; i < kFillSources; ++i) {
    if (incomplete[i]) fills.by_source[i].reset();
  }
  fills.running_share = table.events.empty() ? 0 : smallest_share;
  return fills;
}

void add_fills(FillCounts& sum, const FillCounts& more) {
  if (sum == FillCounts{}) {
    sum = more;
    return;
  }
  if (more == FillCounts{}) return;
  for (std::size_t i = 0; i < kFillSources; ++i) {
    if (sum.by_source[i] && more.by_source[i]) {
      *sum.by_source[i] += *more.by_source[i];
    } else {
      sum.by_source[i].reset();
    }
  }
  sum.running_share = std::min(sum.running_share, more.running_share);
}

}  // namespace atl::runtime
