#include "verify.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace atl::workloads {
namespace {

std::vector<Record> sorted(std::span<const Record> records) {
  std::vector<Record> all(records.begin(), records.end());
  std::sort(all.begin(), all.end());
  return all;
}

std::vector<Record> sorted(const Groups& answer) {
  std::vector<Record> all;
  for (const std::vector<Record>& part : answer) all.insert(all.end(), part.begin(), part.end());
  std::sort(all.begin(), all.end());
  return all;
}

// Calls group(span) for the records of each key of a sorted table.
template <class Group>
void each_group(std::span<const Record> rows, Group&& group) {
  for (std::size_t first = 0; first < rows.size();) {
    std::size_t last = first + 1;
    while (last < rows.size() && rows[last].key == rows[first].key) ++last;
    group(rows.subspan(first, last - first));
    first = last;
  }
}

template <class Result>
bool right(std::span<const Record> records, const Groups& answer, Result result) {
  std::vector<Record> expected;
  each_group(sorted(records), [&](std::span<const Record> group) {
    expected.push_back({group.front().key, result(group)});
  });
  return expected == sorted(answer);
}

}  // namespace

bool right_medians(std::span<const Record> records, const Groups& answer) {
  return right(records, answer, [](std::span<const Record> group) {
    return group[(group.size() - 1) / 2].value + group[group.size() / 2].value;
  });
}

bool right_counts(std::span<const Record> records, const Groups& answer) {
  return right(records, answer, [](std::span<const Record> group) {
    return static_cast<std::int64_t>(group.size());
  });
}

bool right_join(std::span<const Record> build, std::span<const Record> probe,
                const Joined& answer) {
  const std::vector<Record> smaller = sorted(build);
  const std::vector<Record> larger = sorted(probe);
  Joined expected;
  auto match = smaller.begin();
  each_group(larger, [&](std::span<const Record> group) {
    const std::int64_t key = group.front().key;
    while (match != smaller.end() && match->key < key) ++match;
    for (auto at = match; at != smaller.end() && at->key == key; ++at) {
      for (const Record& row : group) expected.add(*at, row);
    }
  });
  return expected == answer;
}

}  // namespace atl::workloads
