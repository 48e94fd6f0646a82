// What tests of the runtime share: made-up machines whose cores stand on the real CPUs.
#pragma once

#include <sched.h>

#include <vector>

#include "atoll/runtime/options.hpp"

namespace atl::test {

// The CPUs that this process may use.
inline std::vector<int> real_cpus() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  sched_getaffinity(0, sizeof mask, &mask);
  std::vector<int> cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(static_cast<std::size_t>(cpu), &mask)) cpus.push_back(cpu);
  }
  return cpus;
}

inline Places eight_on_four_chiplets() {
  return synthetic_places("node:2 chiplet:2 core:2", real_cpus());
}

inline RuntimeOptions with_workers(int workers) {
  RuntimeOptions options;
  options.workers = workers;
  options.places = eight_on_four_chiplets();
  return options;
}

}  // namespace atl::test
