// What hwloc does not tell of a live or captured system: files of /sys and /proc below `root`
// ("" is this system), and the affinity mask. A file that is not there is no fault.
#pragma once

#include <filesystem>

#include "model.hpp"

namespace atl::topology {

// CPUs that are present and offline.
Pus offline_cpus(const std::filesystem::path& root);

// MemTotal of /proc/meminfo.
std::optional<std::uint64_t> mem_total_bytes(const std::filesystem::path& root);

// Hardware network interfaces; `node` as the kernel's numa_node says, none where it says -1.
std::vector<Nic> network_interfaces(const std::filesystem::path& root);

// The tightest memory limit from this process's cgroup to the root; v2's memory.max and v1's
// memory.limit_in_bytes.
std::optional<std::uint64_t> memory_max_bytes(const std::filesystem::path& root);

// The calling thread's affinity mask.
Pus affinity();

}  // namespace atl::topology
