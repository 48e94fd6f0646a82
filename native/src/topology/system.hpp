// Reads what hwloc does not report about a live or captured system: files of /sys and /proc below
// `root` ("" is this system), and the affinity mask. A missing file is not a fault.
#pragma once

#include <filesystem>

#include "model.hpp"

namespace atl::topology {

// CPUs that are present and offline.
Pus offline_cpus(const std::filesystem::path& root);

// MemTotal from /proc/meminfo.
std::optional<std::uint64_t> mem_total_bytes(const std::filesystem::path& root);

// Hardware network interfaces; `node` is the kernel's numa_node, or nullopt for its -1.
std::vector<Nic> network_interfaces(const std::filesystem::path& root);

// Returns the smallest memory limit from this process's cgroup up to the root: memory.max in v2,
// memory.limit_in_bytes in v1.
std::optional<std::uint64_t> memory_max_bytes(const std::filesystem::path& root);

// The calling thread's affinity mask.
Pus affinity();

}  // namespace atl::topology
