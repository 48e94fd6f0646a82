// Puts cores, in whatever order they come, into the order and the numbering of Places.
#pragma once

#include <compare>
#include <string>
#include <vector>

#include "atoll/runtime/places.hpp"

namespace atl::runtime {

inline constexpr int kMostCores = 8192;     // places.hpp says why
inline constexpr int kMostChiplets = 1024;  // likewise
inline constexpr int kMostCpu = 1 << 20;    // far above any kernel's NR_CPUS

// A core with the names that its source gives its places: any numbers, equal where they are equal.
struct RawCore {
  std::vector<int> cpus;
  int package = 0;
  int node = 0;
  int chiplet = 0;  // the same number in another node or package is another chiplet
};

// Levels are those of the structure. Chiplets stand in the order of their first cores, cores as
// they came. Throws RuntimeFault if there is no core or a limit is exceeded.
Places build_places(const std::vector<RawCore>& cores);

// How far chiplets are without a profile, by places.hpp's rule.
std::vector<std::vector<int>> structural_levels(const std::vector<Core>& cores);

}  // namespace atl::runtime
