// How much CPU time the cgroup allows: the kernel stops all threads that exceed it until the next
// period, so more workers than that gain nothing and stall each other.
#pragma once

#include <filesystem>
#include <optional>

#include "atoll/runtime/places.hpp"

namespace atl::runtime {

// In CPUs: the least of this process's cgroup and those above it; cpu.max in v2, the CFS quota in
// v1. Empty: no limit. Reads below `root` ("" is this system).
std::optional<double> cpu_limit(const std::filesystem::path& root = "/");

// One worker per core, but not more than the limit, rounded up.
int default_workers(int cores, std::optional<double> limit);
// What a runtime does on these places: made-up ones have no limit.
int default_workers(const Places& places);

}  // namespace atl::runtime
