#include "cpu_limit.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>

#include "base/cgroup.hpp"

namespace atl::runtime {

std::optional<double> cpu_limit(const std::filesystem::path& root) {
  std::optional<double> least;
  base::each_cgroup(root, "cpu", [&](const std::filesystem::path& folder, bool unified) {
    double quota_us = 0;
    double period_us = 0;
    if (unified) {
      std::ifstream(folder / "cpu.max") >> quota_us >> period_us;  // fails for "max 100000"
    } else {
      std::ifstream(folder / "cpu.cfs_quota_us") >> quota_us;  // -1: none
      std::ifstream(folder / "cpu.cfs_period_us") >> period_us;
    }
    if (quota_us <= 0 || period_us <= 0) return;
    const double cpus = quota_us / period_us;
    least = std::min(least.value_or(cpus), cpus);
  });
  return least;
}

int default_workers(int cores, std::optional<double> limit) {
  if (!limit || *limit >= cores) return cores;
  return std::max(1, static_cast<int>(std::ceil(*limit)));
}

int default_workers(const Places& places) {
  return default_workers(static_cast<int>(places.cores.size()),
                         places.made_up ? std::nullopt : cpu_limit());
}

}  // namespace atl::runtime
