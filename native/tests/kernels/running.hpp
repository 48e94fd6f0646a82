// Runs a whole workload as the program does.
#pragma once

#include <map>
#include <string>

#include "kernels/graphs.hpp"
#include "workload.hpp"

namespace atl::kernels {

// The result of a verified run under the given parameters, the others being the defaults.
inline Result run_workload(const Workload& workload, const std::string& scheduler, int workers,
                           std::map<std::string, std::string> given, int runs = 1,
                           std::uint64_t seed = 1) {
  for (const Parameter& each : workload.parameters) given.emplace(each.name, each.otherwise);
  Result result;
  with_team(scheduler, workers, [&](Team& team, const Memory& memory) {
    Conditions conditions{.memory = memory, .runs = runs, .seed = seed};
    result = workload.run(team, Settings(given), conditions);
    EXPECT_EQ(conditions.seconds.size(), static_cast<std::size_t>(runs));
  });
  return result;
}

}  // namespace atl::kernels
