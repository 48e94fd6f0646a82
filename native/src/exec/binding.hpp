// Applies the settings to this process: CPU mask, memory policy, transparent huge pages.
//
// libnuma parses the lists of nodes and CPUs, so they mean the same as in numactl (all, ranges,
// !, +, netdev: and the like). Its errors become Faults. The policy is set with set_mempolicy(2)
// directly, because libnuma 2.0.16 does not support weighted interleave and reports no errno for
// the other policies.
#pragma once

#include <string>

#include "cpu_set.hpp"
#include "options.hpp"

namespace atl::exec {

// Returns the CPUs that -N or -C selects.
[[nodiscard]] CpuSet cpus_of_flag(const CpuFlag& flag);

// Returns the CPUs that this process may use now (affinity mask and cgroup).
[[nodiscard]] CpuSet current_cpus();

// Binds this process to `cpus`. The kernel silently drops CPUs that are offline. Throws Fault if
// no CPU is left or, with `all_of_them`, if any CPU was dropped.
void bind_cpus(const CpuSet& cpus, bool all_of_them);

// Throws Fault for a malformed list, a node that does not exist or has no memory, a kernel that
// is too old, or a container that forbids the call.
void set_memory_policy(const MemoryFlag& flag);

// Describes the current policy, for example "bind: 0-1".
[[nodiscard]] std::string describe_memory_policy();

void disable_huge_pages();
[[nodiscard]] bool huge_pages_disabled();

}  // namespace atl::exec
