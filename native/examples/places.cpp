// A machine as the runtime sees it: this one, and one from a short description.
#include <atoll/runtime.hpp>
#include <cstdio>
#include <set>
#include <vector>

// The CPUs that this process may use.
std::vector<int> cpus_here() {
  std::vector<int> cpus;
  for (const atl::Core& core : atl::places_here().cores) {
    cpus.insert(cpus.end(), core.cpus.begin(), core.cpus.end());
  }
  return cpus;
}

int main() {
  // Two nodes of two chiplets of four cores; 16 workers share the CPUs that this machine has.
  const atl::Places places = atl::synthetic_places("node:2 chiplet:2 core:4", cpus_here());

  // Three threads on two chiplets: which cores do they get?
  std::set<int> chiplets;
  for (const int core : atl::spread_cores(places, 3, 2)) {
    chiplets.insert(places.cores[static_cast<std::size_t>(core)].chiplet);
  }

  // From which workers does the worker on core 0 steal? Its chiplet first, the other node last.
  atl::Runtime runtime({.places = places});
  const atl::VictimOrder order = atl::victims(places, runtime.cores(), 0);
  for (const atl::VictimRing& ring : order.rings) {
    std::printf("distance %d: %zu workers\n", static_cast<int>(ring.distance),
                order.of(ring).size());
  }
  const bool right = chiplets.size() == 2 && runtime.workers() == 16 && order.rings.size() == 3 &&
                     order.of(order.rings[0]).size() == 3;
  return right ? 0 : 1;
}
