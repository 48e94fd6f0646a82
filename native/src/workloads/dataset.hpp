// The data sets of numa-query-tuning, section IV-B, and two more.
//
// Record i is a function of the seed and of i alone. So any thread can make any part, and the data
// are the same with any number of threads. Values are uniform in [0, 2^31). Keys are in
// [0, groups), n is the number of records:
//
//   moving-cluster  uniform in a window of 1,024 keys that slides from the first key to the last
//                   (the paper does not say how large its window is). A few of the first and last
//                   keys, which are in it for a short time, may not come at all
//   sequential      i mod groups: each key n / groups times, all keys in turn
//   runs            i * groups / n: each key n / groups times in a row (the paper's 'segments' can
//                   be read as either)
//   zipf            Zipf's law with exponent 0.5, a draw for each record; key 0 is the most
//                   frequent one
//   heavy-hitter    key 0 with probability 1/2, else uniform (the paper names this one in section
//                   IV-D2 and does not define it)
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "rows.hpp"

namespace atl::workloads {

enum class Dataset { kMovingCluster, kSequential, kRuns, kZipf, kHeavyHitter };

inline constexpr std::uint64_t kWindow = 1024;
inline constexpr std::int64_t kValues = std::int64_t{1} << 31;
// So that a position in the data fits 32 bits, and fixed-point steps are exact (dataset.cpp).
inline constexpr std::uint64_t kMostRecords = (std::uint64_t{1} << 32) - 1;

std::string_view name_of(Dataset dataset);
// nullopt for an unknown name.
std::optional<Dataset> dataset_named(std::string_view name);
// 'moving-cluster, sequential, ...'
std::string_view dataset_names();

struct DataSpec {
  Dataset dataset;
  std::uint64_t records;  // 1 to kMostRecords
  std::uint64_t groups;   // 1 to records
  std::uint64_t seed;
};

// Writes the records from `first` on. `out` begins at a multiple of 16 bytes, as memory from malloc
// does.
void fill(const DataSpec& spec, std::uint64_t first, std::span<Record> out);

// The smaller table of a join: each key of [0, keys) once, in random order, with uniform values.
// Writes the rows from `first` on.
void fill_keys(std::uint64_t keys, std::uint64_t seed, std::uint64_t first, std::span<Record> out);

}  // namespace atl::workloads
