// W3 as fast as we know how: rows that a probe finds lie in the table itself, so that it reads one
// cache line.
//
// by key   Where the keys of the smaller side come once and are at least a quarter of their range:
//          an array of values by key, the array join (NOPA) of Schuh et al., "An Experimental
//          Comparison of Thirteen Relational Equi-Joins in Main Memory" (SIGMOD 2016). No hash, no
//          stored key, 8 bytes a place; keys in order are read in order.
// by hash  Else: one table of open addressing, two thirds full: of an emptier one, more would miss
//          the L3 cache. Where no key comes twice, a probe ends with what it finds. Probes are made
//          in batches, whose lines are fetched before they are needed (Chen et al., "Improving Hash
//          Join Performance through Prefetching", ICDE 2004).
//
// Both tables are in huge pages where the system has them. O(build + probe): by key always, by hash
// expected.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "hash.hpp"
#include "join.hpp"
#include "rows.hpp"

namespace atl::workloads {

// The least and the greatest key of some rows; none: least > most.
struct KeyRange {
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  std::int64_t most = std::numeric_limits<std::int64_t>::min();

  void add(std::int64_t key) {
    least = std::min(least, key);
    most = std::max(most, key);
  }
  // Whether there are keys, at most this many with those between them.
  [[nodiscard]] bool within(std::size_t keys) const {
    return least <= most &&
           static_cast<std::uint64_t>(most) - static_cast<std::uint64_t>(least) < keys;
  }
};

template <class Team>
KeyRange range_of(Team& team, std::span<const Record> rows) {
  typename Team::template Local<KeyRange> ranges(team, [] { return KeyRange(); });
  team.shares(rows.size(), [&](std::size_t first, std::size_t last) {
    KeyRange part;  // in registers
    for (const Record& row : rows.subspan(first, last - first)) part.add(row.key);
    auto range = ranges.lease();
    range->add(part.least);
    range->add(part.most);
  });
  KeyRange all;
  ranges.for_each([&](const KeyRange& part) {
    all.add(part.least);
    all.add(part.most);
  });
  return all;
}

// A value for each key of a range. A key that repeats, or the one value that marks a free place,
// leaves fewer places taken than there are rows: whoever fills the array has to count them.
class KeyArray {
 public:
  // Zero bytes are free places.
  explicit KeyArray(const KeyRange& range)
      : least_(static_cast<std::uint64_t>(range.least)),
        values_(static_cast<std::uint64_t>(range.most) - least_ + 1, Pages::kHuge) {}

  [[nodiscard]] std::size_t size() const { return values_.size(); }

  // Any number of threads may call it. The key is in the range.
  void insert(const Record& row) {
    // Relaxed: nobody reads before the loop of insertions has ended. Atomic: keys may repeat.
    std::atomic_ref(values_[static_cast<std::uint64_t>(row.key) - least_])
        .store(row.value ^ kFree, std::memory_order_relaxed);
  }

  // Of places [first, last).
  [[nodiscard]] std::size_t taken(std::size_t first, std::size_t last) const {
    const std::span<const std::int64_t> part = values_.all().subspan(first, last - first);
    return part.size() - static_cast<std::size_t>(std::count(part.begin(), part.end(), 0));
  }

  // Any key.
  template <class Found>
  void find(std::int64_t key, Found&& found) const {
    const std::uint64_t place = static_cast<std::uint64_t>(key) - least_;
    if (place >= values_.size()) return;
    const std::int64_t value = values_[place];
    if (value != 0) found(Record{key, value ^ kFree});
  }

 private:
  static constexpr std::int64_t kFree = std::numeric_limits<std::int64_t>::min();

  std::uint64_t least_;
  Mapped<std::int64_t> values_;  // each ^ kFree
};

// The rows by key; nullopt where they do not lie close enough, or repeat.
template <class Team>
std::optional<KeyArray> by_key(Team& team, std::span<const Record> rows) {
  constexpr std::size_t kPlaces = 4;  // for a row: 32 bytes, little more than a table by hash has
  const KeyRange range = range_of(team, rows);
  if (!range.within(kPlaces * rows.size())) return std::nullopt;
  std::optional<KeyArray> array(range);
  team.shares(rows.size(), [&](std::size_t first, std::size_t last) {
    for (const Record& row : rows.subspan(first, last - first)) array->insert(row);
  });
  std::atomic<std::size_t> taken{0};
  team.shares(array->size(), [&](std::size_t first, std::size_t last) {
    // Relaxed: the end of the loop orders it.
    taken.fetch_add(array->taken(first, last), std::memory_order_relaxed);
  });
  if (taken.load(std::memory_order_relaxed) != rows.size()) array.reset();
  return array;
}

class OpenTable {
 public:
  explicit OpenTable(std::size_t rows) : slots_(rows + rows / 2 + 1, Pages::kHuge) {}

  // Any number of threads may call it, no more rows than were announced. Any key but -1.
  void insert(const Record& row) {
    const std::int64_t own = after(row.key);
    for (std::size_t at = place(row.key);; at = next(at)) {
      // Relaxed: nobody reads a slot's value before the loop of insertions has ended.
      const std::atomic_ref<std::int64_t> key(slots_[at].key);
      std::int64_t seen = key.load(std::memory_order_relaxed);
      if (seen == 0 && key.compare_exchange_strong(seen, own, std::memory_order_relaxed)) {
        slots_[at].value = row.value;
        return;
      }
      // Of rows with one key, the later one comes by the earlier one's slot.
      if (seen == own) repeated_.store(true, std::memory_order_relaxed);
    }
  }

  [[nodiscard]] std::size_t place(std::int64_t key) const {
    return static_cast<std::size_t>(
        (static_cast<unsigned __int128>(hash_of(key)) * slots_.size()) >> 64);
  }
  void prefetch(std::size_t place) const { __builtin_prefetch(&slots_[place]); }

  // Looks from the key's place on.
  template <class Found>
  void find(std::size_t place, std::int64_t key, Found&& found) const {
    for (std::size_t at = place; slots_[at].key != 0; at = next(at)) {
      if (slots_[at].key != after(key)) continue;
      found(Record{key, slots_[at].value});
      if (!repeated_.load(std::memory_order_relaxed)) return;
    }
  }

 private:
  static std::int64_t after(std::int64_t key) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(key) + 1);
  }
  [[nodiscard]] std::size_t next(std::size_t at) const {
    return at + 1 == slots_.size() ? 0 : at + 1;
  }

  Rows slots_;  // a row's key plus 1, as 0 is free, and its value
  std::atomic<bool> repeated_{false};
};

template <class Sink, class Team>
std::vector<Sink> join_by_hash(Team& team, std::span<const Record> build,
                               std::span<const Record> probe) {
  constexpr std::size_t kBatch = 32;  // lines on their way at once; a core has 10 to 48 buffers
  OpenTable table(build.size());
  team.shares(build.size(), [&](std::size_t first, std::size_t last) {
    for (std::size_t row = first; row < last; ++row) {
      if (row + kBatch < last) table.prefetch(table.place(build[row + kBatch].key));
      table.insert(build[row]);
    }
  });
  return joined_parts<Sink>(
      team, probe.size(), [&](std::size_t first, std::size_t last, Sink& sink) {
        std::size_t places[kBatch];
        for (std::size_t begin = first; begin < last; begin += kBatch) {
          const auto batch = probe.subspan(begin, std::min(kBatch, last - begin));
          for (std::size_t at = 0; at < batch.size(); ++at) {
            places[at] = table.place(batch[at].key);
            table.prefetch(places[at]);
          }
          for (std::size_t at = 0; at < batch.size(); ++at) {
            table.find(places[at], batch[at].key,
                       [&](const Record& match) { sink.add(match, batch[at]); });
          }
        }
      });
}

template <class Sink, class Team>
std::vector<Sink> join_fast(Team& team, std::span<const Record> build,
                            std::span<const Record> probe) {
  const std::optional<KeyArray> array = by_key(team, build);
  if (!array) return join_by_hash<Sink>(team, build, probe);
  return joined_parts<Sink>(
      team, probe.size(), [&](std::size_t first, std::size_t last, Sink& sink) {
        for (const Record& row : probe.subspan(first, last - first)) {
          array->find(row.key, [&](const Record& match) { sink.add(match, row); });
        }
      });
}

}  // namespace atl::workloads
