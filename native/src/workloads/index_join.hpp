// W4: an index nested loop join.
//
//   SELECT * FROM build b JOIN probe p ON b.key = p.key
//
// after numa-query-tuning (table I, section IV-B): the data of W3, with an index on the smaller
// table, whose keys are unique. The index is there before the join begins, and the paper gives both
// times apart (figure 7e). It does not say who builds it; two of its four indexes are not made for
// more than one thread. Here all threads build.
//
// paper  A thread looks up one key after the other.
// fast   A thread has many lookups on their way. Each goes one node further and asks for the cache
//        lines of its next node, then the others have their turn (Kocberber et al., "Asynchronous
//        Memory Access Chaining", PVLDB 9(4), 2015).
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "indexes/index.hpp"
#include "join.hpp"
#include "rows.hpp"

namespace atl::workloads {

template <Index I, class Team>
void build_index(Team& team, I& index, std::span<const Record> rows) {
  team.shares(rows.size(), [&](std::size_t first, std::size_t last) {
    for (const Record& row : rows.subspan(first, last - first)) index.insert(row.key, row.value);
  });
  index.settle();
}

// Calls found(value, row) for each probe that has a match, in order.
template <Index I, class Found>
void look_up(const I& index, std::span<const Record> probes, Found&& found) {
  for (const Record& row : probes) {
    if (const auto value = find(index, row.key)) found(*value, row);
  }
}

// The same in any order.
template <Index I, class Found>
void look_up_interleaved(const I& index, std::span<const Record> probes, Found&& found) {
  constexpr std::size_t kLookups = 16;  // lines on their way at once; a core has 10 to 48 buffers
  struct Slot {
    typename I::Lookup lookup;
    const Record* row;
  };
  Slot slots[kLookups];
  std::size_t busy = 0;
  auto next = probes.begin();
  while (busy < kLookups && next != probes.end()) {
    slots[busy++] = {index.begin(next->key), &*next};
    ++next;
  }
  while (busy > 0) {
    for (std::size_t at = 0; at < busy;) {
      Slot& slot = slots[at];
      if (!index.step(slot.lookup)) {
        index.prefetch(slot.lookup);
        ++at;
        continue;
      }
      if (slot.lookup.found) found(*slot.lookup.found, *slot.row);
      if (next != probes.end()) {
        slot = {index.begin(next->key), &*next};
        ++next;
        ++at;
      } else {
        slot = slots[--busy];
      }
    }
  }
}

// Part of a join. It does not depend on the team, so that its loops are compiled once for both.
template <class Sink, Index I>
[[gnu::noinline]] void join_rows(const I& index, std::span<const Record> rows, bool interleaved,
                                 Sink& sink) {
  Sink part = std::move(sink);  // sums in registers
  const auto add = [&](std::int64_t value, const Record& row) { part.add({row.key, value}, row); };
  if (interleaved) {
    look_up_interleaved(index, rows, add);
  } else {
    look_up(index, rows, add);
  }
  sink = std::move(part);
}

template <class Sink, Index I, class Team>
std::vector<Sink> join_by(Team& team, const I& index, std::span<const Record> probe,
                          bool interleaved) {
  return joined_parts<Sink>(
      team, probe.size(), [&](std::size_t first, std::size_t last, Sink& sink) {
        join_rows(index, probe.subspan(first, last - first), interleaved, sink);
      });
}

}  // namespace atl::workloads
