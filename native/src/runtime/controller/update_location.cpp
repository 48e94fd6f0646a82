#include "update_location.hpp"

#include <algorithm>

namespace atl::runtime {

int UpdateLocation::core(int rank, int spread) const {
  int chiplet = rank / width(spread);  // line 5
  int slot = rank % width(spread);     // line 6
  if (chiplet >= chiplets) {           // line 7
    chiplet %= chiplets;
    slot += rank / cores_per_chiplet;  // line 9
  }
  return chiplet * chiplets + slot;  // line 11
}

std::vector<int> update_location(const Places& places, std::span<const int> now, int spread) {
  UpdateLocation machine{.chiplets = places.chiplets()};
  for (int chiplet = 0; chiplet < machine.chiplets; ++chiplet) {
    const auto cores = static_cast<int>(places.cores_of_chiplet(chiplet).size());
    machine.cores_per_chiplet = std::max(machine.cores_per_chiplet, cores);
  }
  std::vector<int> cores(now.begin(), now.end());
  const auto threads = static_cast<int>(cores.size());
  if (!machine.accepts(threads, spread) || machine.width(spread) == 0) return cores;
  for (int rank = 0; rank < threads; ++rank) {
    const int core = machine.core(rank, spread);
    if (core < static_cast<int>(places.cores.size())) cores[static_cast<std::size_t>(rank)] = core;
  }
  return cores;
}

}  // namespace atl::runtime
