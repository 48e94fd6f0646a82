// W1 and W2 as numa-query-tuning has them (table I, section IV-B): every thread updates one shared
// table. Nothing is tuned: these are the programs that a malloc, a memory policy or a placement is
// tried on.
//
//   W1, holistic      SELECT key, MEDIAN(value) FROM records GROUP BY key
//                     an entry keeps all values of its group in a vector that grows by malloc
//   W2, distributive  SELECT key, COUNT(value) FROM records GROUP BY key
//
// Each thread reads its even share of the records, then its share of the buckets, whose entries it
// frees. Expected O(records), with 8 to 16 bytes a record from malloc in W1.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "groups.hpp"
#include "shared_table.hpp"

namespace atl::workloads {

// add(state, record) for each record, then result(state) for each group.
template <class State, class Team, class Add, class Result>
Groups aggregate_shared(Team& team, std::span<const Record> records, std::size_t groups, Add add,
                        Result result) {
  SharedTable<State> table(groups);
  team.shares(records.size(), [&](std::size_t first, std::size_t last) {
    for (const Record& record : records.subspan(first, last - first)) {
      table.update(record.key, [&](State& state) { add(state, record); });
    }
  });
  using Part = std::vector<Record>;
  typename Team::template Local<Part> answers(team, [] { return Part(); });
  team.shares(table.buckets(), [&](std::size_t first, std::size_t last) {
    auto mine = answers.lease();
    table.drain(first, last,
                [&](std::int64_t key, State& state) { mine->push_back({key, result(state)}); });
  });
  return parts_of(answers);
}

template <class Team>
Groups median_paper(Team& team, std::span<const Record> records, std::size_t groups) {
  using Values = std::vector<std::int64_t>;
  return aggregate_shared<Values>(
      team, records, groups,
      [](Values& values, const Record& record) { values.push_back(record.value); },
      [](Values& values) { return twice_median(values); });
}

template <class Team>
Groups count_paper(Team& team, std::span<const Record> records, std::size_t groups) {
  return aggregate_shared<std::int64_t>(
      team, records, groups, [](std::int64_t& count, const Record&) { ++count; },
      [](std::int64_t count) { return count; });
}

}  // namespace atl::workloads
