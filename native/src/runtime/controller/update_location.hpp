// Algorithm 2 of ARCAS ("Update Location", section 4.2) as printed: the core of each thread.
//
// As printed it may reject a spread that fits exactly, put two ranks on one core, use another
// number of chiplets than the spread, name a core that does not exist, and divide by zero
// (native/tests/runtime/places/mapping_test.cpp shows each). spread_cores (mapping.hpp) is right
// where it fails; this is for comparison.
#pragma once

#include <span>
#include <vector>

#include "atoll/runtime/places.hpp"

namespace atl::runtime {

struct UpdateLocation {
  int chiplets = 0;           // CHIPLETS
  int cores_per_chiplet = 0;  // CORES_PER_CHIPLET

  // Line 2.
  [[nodiscard]] bool accepts(int threads, int spread) const {
    return spread > 0 && spread <= chiplets && threads < spread * cores_per_chiplet;
  }
  // The divisor of lines 5 and 6, in whole numbers.
  [[nodiscard]] int width(int spread) const { return cores_per_chiplet / spread; }
  // Lines 5 to 11. The width must not be 0.
  [[nodiscard]] int core(int rank, int spread) const;
};

// The cores, as indices of places.cores, of threads that sit on the cores `now`, by rank. A thread
// stays where it is if line 2 rejects the spread, or where the paper leaves open what happens: the
// width is 0, or its core does not exist. CORES_PER_CHIPLET is that of the largest chiplet.
std::vector<int> update_location(const Places& places, std::span<const int> now, int spread);

}  // namespace atl::runtime
