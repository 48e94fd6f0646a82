// Medians of keys that have too many records for one thread.
//
// A partition (partitions.hpp) is one thread's, so a key with half of all records would be one
// thread's too, while the others wait. All threads look for its median together: of a sample two
// values are taken that lie closely around it, one pass counts what is below and above them and
// keeps what is between, and the rest is a small selection (Floyd and Rivest, "Expected Time Bounds
// for Selection", CACM 18(3), 1975). Two values that were too close are taken further apart, at
// last as far as there are numbers, so the answer is always right.
//
// O(records of the partition) for each heavy key, of which a partition has 32 at most; no copy of
// its records.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "partitions.hpp"
#include "rows.hpp"

namespace atl::workloads {

inline constexpr std::size_t kBlockGrain = 8;  // 128 KiB at a time

struct HeavyKey {
  std::int64_t key;
  std::vector<std::int64_t> sample;  // of its values, in order
};

// The keys with about a 32nd of the records or more, found by a sample.
inline std::vector<HeavyKey> heavy_keys(const Blocks& blocks, std::size_t records) {
  constexpr std::size_t kSample = 8'192;
  const std::size_t step = std::max<std::size_t>(records / kSample, 1);
  std::vector<Record> sample;
  std::size_t skip = 0;  // records before the next one to take
  for (const std::span<const Record> block : blocks) {
    for (; skip < block.size(); skip += step) sample.push_back(block[skip]);
    skip -= block.size();
  }
  std::sort(sample.begin(), sample.end());
  std::vector<HeavyKey> heavy;
  for (auto first = sample.begin(); first != sample.end();) {
    const auto last = std::find_if(first, sample.end(),
                                   [&](const Record& record) { return record.key != first->key; });
    if (static_cast<std::size_t>(last - first) * 32 >= sample.size()) {
      HeavyKey& found = heavy.emplace_back(first->key);
      for (auto at = first; at != last; ++at) found.sample.push_back(at->value);
    }
    first = last;
  }
  return heavy;
}

// A key's values beside two bounds.
struct Around {
  std::int64_t low;
  std::int64_t high;  // at least low
  std::size_t below = 0;
  std::size_t at_low = 0;
  std::vector<std::int64_t> between{};  // neither of the bounds
  std::size_t at_high = 0;              // where the bounds are equal: none
  std::size_t above = 0;

  void add(std::int64_t value) {
    if (value < low) {
      ++below;
    } else if (value > high) {
      ++above;
    } else if (value == low) {
      ++at_low;
    } else if (value == high) {
      ++at_high;
    } else {
      between.push_back(value);
    }
  }
  void add(const Around& other) {
    below += other.below;
    at_low += other.at_low;
    between.insert(between.end(), other.between.begin(), other.between.end());
    at_high += other.at_high;
    above += other.above;
  }
  [[nodiscard]] std::size_t size() const {
    return below + at_low + between.size() + at_high + above;
  }
  // The value that `rank` others come before; nullopt if it is beyond the bounds.
  std::optional<std::int64_t> ranked(std::size_t rank) {
    if (rank < below) return std::nullopt;
    rank -= below;
    if (rank < at_low) return low;
    rank -= at_low;
    if (rank < between.size()) {
      const auto place = between.begin() + static_cast<std::ptrdiff_t>(rank);
      std::nth_element(between.begin(), place, between.end());
      return *place;
    }
    return rank - between.size() < at_high ? std::optional(high) : std::nullopt;
  }
};

// Looks at the records of a key in the blocks.
template <class Team>
Around around(Team& team, const Blocks& blocks, std::int64_t key, Around bounds) {
  typename Team::template Local<Around> parts(team, [=] { return bounds; });
  team.pieces(blocks.size(), kBlockGrain, [&](std::size_t first, std::size_t last) {
    auto part = parts.lease();
    for (; first < last; ++first) {
      for (const Record& record : blocks[first]) {
        if (record.key == key) part->add(record.value);
      }
    }
  });
  parts.for_each([&](const Around& part) { bounds.add(part); });
  return bounds;
}

// Twice the median of a heavy key.
template <class Team>
std::int64_t twice_median(Team& team, const Blocks& blocks, const HeavyKey& heavy) {
  const std::vector<std::int64_t>& sample = heavy.sample;
  const std::size_t middle = sample.size() / 2;
  // Four standard deviations of the median's place in the sample.
  for (auto reach = static_cast<std::size_t>(2 * std::sqrt(sample.size())) + 1;; reach *= 4) {
    using Limits = std::numeric_limits<std::int64_t>;
    const Around bounds{reach > middle ? Limits::min() : sample[middle - reach],
                        middle + reach >= sample.size() ? Limits::max() : sample[middle + reach]};
    Around found = around(team, blocks, heavy.key, bounds);
    const auto lower = found.ranked((found.size() - 1) / 2);
    const auto upper = found.ranked(found.size() / 2);
    if (lower && upper) return *lower + *upper;
  }
}

// Leaves a partition's records of other keys only.
template <class Team>
void leave_others(Team& team, const std::vector<Partitions*>& written, std::size_t partition,
                  const std::vector<HeavyKey>& heavy) {
  const Blocks blocks = blocks_of(written, partition);
  using Others = std::vector<Record>;
  typename Team::template Local<Others> parts(team, [] { return Others(); });
  team.pieces(blocks.size(), kBlockGrain, [&](std::size_t first, std::size_t last) {
    auto part = parts.lease();
    for (; first < last; ++first) {
      for (const Record& record : blocks[first]) {
        const bool other = std::none_of(heavy.begin(), heavy.end(),
                                        [&](const HeavyKey& one) { return one.key == record.key; });
        if (other) part->push_back(record);
      }
    }
  });
  for (Partitions* const part : written) part->release(partition);
  parts.for_each([&](const Others& part) {
    for (const Record& record : part) written.front()->add(record);
  });
}

// Answers the heavy keys of big partitions, by all threads each, and leaves the other records of
// these partitions.
template <class Team>
std::vector<Record> take_heavy_medians(Team& team, const std::vector<Partitions*>& written,
                                       std::size_t records) {
  std::vector<Record> answers;
  if (written.empty()) return answers;
  const std::size_t partitions = written.front()->size();
  // More than half of a thread's share, and not just what every partition has; a smaller one is not
  // worth a loop of all threads.
  const std::size_t big = std::max({records / (2 * static_cast<std::size_t>(team.threads())),
                                    4 * records / partitions, std::size_t{1} << 14});
  for (std::size_t partition = 0; partition < partitions; ++partition) {
    const Blocks blocks = blocks_of(written, partition);
    const std::size_t size = records_in(blocks);
    if (size <= big) continue;
    const std::vector<HeavyKey> heavy = heavy_keys(blocks, size);
    if (heavy.empty()) continue;
    for (const HeavyKey& one : heavy) {
      answers.push_back({one.key, twice_median(team, blocks, one)});
    }
    leave_others(team, written, partition, heavy);
  }
  return answers;
}

}  // namespace atl::workloads
