// Brings cores from any order into the order and numbering of Places.
#pragma once

#include <compare>
#include <string>
#include <vector>

#include "atoll/runtime/places.hpp"

namespace atl::runtime {

inline constexpr int kMostCores = 8192;     // places.hpp explains why
inline constexpr int kMostChiplets = 1024;  // likewise
inline constexpr int kMostCpu = 1 << 20;    // far above any kernel's NR_CPUS

// A core with the numbers of its places in its source: any numbers, equal for equal places.
struct RawCore {
  std::vector<int> cpus;
  int package = 0;
  int node = 0;
  int chiplet = 0;  // the same number in another node or package is another chiplet
};

// Levels follow the structure. Chiplets are in the order of their first cores, cores in the given
// order. Throws RuntimeFault without cores or above the limits.
Places build_places(const std::vector<RawCore>& cores);

// The distances of chiplets without a profile, by the rule of places.hpp.
std::vector<std::vector<int>> structural_levels(const std::vector<Core>& cores);

}  // namespace atl::runtime
