// W3: a hash join without partitioning.
//
//   SELECT * FROM build b JOIN probe p ON b.key = p.key
//
// after numa-query-tuning (table I, section IV-B), whose code and data are those of its reference
// [15]. A result is read and summed (Joined), or kept in vectors that grow by malloc (Kept): the
// paper's gains by other mallocs need a join that allocates while it runs.
//
// paper  One table of chains, built without latches: an insertion puts its row in front of its
//        bucket's chain by one atomic exchange. The chain is an array of row numbers beside the
//        rows.
// fast   join_fast.hpp
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "hash.hpp"
#include "rows.hpp"

namespace atl::workloads {

// What is joined, as sums.
struct Joined {
  std::uint64_t rows = 0;
  // Modulo 2^64.
  std::uint64_t build_sum = 0;
  std::uint64_t probe_sum = 0;
  bool operator==(const Joined&) const = default;

  void add(const Record& build, const Record& probe) {
    ++rows;
    build_sum += static_cast<std::uint64_t>(build.value);
    probe_sum += static_cast<std::uint64_t>(probe.value);
  }
  void add(const Joined& other) {
    rows += other.rows;
    build_sum += other.build_sum;
    probe_sum += other.probe_sum;
  }
};

// What is joined, row by row.
struct Kept {
  struct Row {
    std::int64_t key;
    std::int64_t build_value;
    std::int64_t probe_value;
  };
  std::vector<Row> rows;

  void add(const Record& build, const Record& probe) {
    rows.push_back({build.key, build.value, probe.value});
  }
};

// The sums of the threads' parts.
inline Joined total(const std::vector<Joined>& parts) {
  Joined all;
  for (const Joined& part : parts) all.add(part);
  return all;
}
inline Joined total(const std::vector<Kept>& parts) {
  Joined all;
  for (const Kept& part : parts) {
    for (const Kept::Row& row : part.rows) {
      all.add({row.key, row.build_value}, {row.key, row.probe_value});
    }
  }
  return all;
}

// The number of bits with at least as many places as rows.
inline int bits_of(std::size_t rows) {
  return rows < 2 ? 1 : static_cast<int>(std::bit_width(rows - 1));
}

class ChainTable {
 public:
  // At most 2^32 - 1 rows, which must stay where they are.
  explicit ChainTable(std::span<const Record> rows)
      : rows_(rows),
        bits_(bits_of(rows.size())),
        heads_(std::size_t{1} << bits_),
        next_(rows.size()) {}

  // Any number of threads may call it, each row once.
  void insert(std::uint32_t row) {
    // Relaxed: nobody follows a chain before the loop of insertions has ended.
    next_[row] =
        heads_[upper(hash_of(rows_[row].key), bits_)].exchange(row + 1, std::memory_order_relaxed);
  }

  template <class Found>
  void find(std::int64_t key, Found&& found) const {
    std::uint32_t at = heads_[upper(hash_of(key), bits_)].load(std::memory_order_relaxed);
    for (; at != 0; at = next_[at - 1]) {
      if (rows_[at - 1].key == key) found(rows_[at - 1]);
    }
  }

 private:
  std::span<const Record> rows_;
  int bits_;
  Mapped<std::atomic<std::uint32_t>> heads_;  // a row's number plus 1; 0: the end
  Mapped<std::uint32_t> next_;
};

// Calls join_part(first, last, sink) for the parts of the larger side; each thread has a sink.
template <class Sink, class Team, class Part>
std::vector<Sink> joined_parts(Team& team, std::size_t rows, Part join_part) {
  typename Team::template Local<Sink> sinks(team, [] { return Sink(); });
  team.shares(rows, [&](std::size_t first, std::size_t last) {
    auto sink = sinks.lease();
    if constexpr (std::same_as<Sink, Joined>) {
      Joined part;  // in registers
      join_part(first, last, part);
      sink->add(part);
    } else {
      join_part(first, last, *sink);
    }
  });
  std::vector<Sink> parts;
  sinks.for_each([&](Sink& sink) { parts.push_back(std::move(sink)); });
  return parts;
}

template <class Sink, class Team>
std::vector<Sink> join_paper(Team& team, std::span<const Record> build,
                             std::span<const Record> probe) {
  ChainTable table(build);
  team.shares(build.size(), [&](std::size_t first, std::size_t last) {
    for (std::size_t row = first; row < last; ++row) table.insert(static_cast<std::uint32_t>(row));
  });
  return joined_parts<Sink>(
      team, probe.size(), [&](std::size_t first, std::size_t last, Sink& sink) {
        for (const Record& row : probe.subspan(first, last - first)) {
          table.find(row.key, [&](const Record& match) { sink.add(match, row); });
        }
      });
}

}  // namespace atl::workloads
