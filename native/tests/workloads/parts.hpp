// What the tests of workloads share.
#pragma once

#include <cstddef>
#include <vector>

#include "dataset.hpp"

namespace atl::workloads::test {

#ifdef __SANITIZE_THREAD__
// Threads meet on the same key and on different ones. One thread finds no races.
inline constexpr Dataset kDatasets[] = {Dataset::kSequential, Dataset::kHeavyHitter};
inline constexpr int kTeams[] = {4};
#else
inline constexpr Dataset kDatasets[] = {Dataset::kMovingCluster, Dataset::kSequential,
                                        Dataset::kRuns, Dataset::kZipf, Dataset::kHeavyHitter};
inline constexpr int kTeams[] = {1, 4};  // numbers of threads
#endif

inline std::vector<Record> records_of(const DataSpec& spec) {
  std::vector<Record> records(spec.records);
  fill(spec, 0, records);
  return records;
}

inline std::vector<Record> keys_of(std::size_t keys, std::uint64_t seed = 1) {
  std::vector<Record> rows(keys);
  fill_keys(keys, seed, 0, rows);
  return rows;
}

}  // namespace atl::workloads::test
