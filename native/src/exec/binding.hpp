// What atoll-exec asks of the kernel: CPU mask, memory policy, transparent huge pages.
//
// Lists of nodes and CPUs are read by libnuma, so that they mean what they mean to numactl
// (all, ranges, !, +, netdev: and the like); its complaints come back as Faults. Policies are
// set with set_mempolicy(2) itself, because libnuma 2.0.16 knows no weighted interleave and
// reports no errno for the others.
#pragma once

#include <string>

#include "cpu_set.hpp"
#include "options.hpp"

namespace atl::exec {

// The CPUs of -N or -C.
[[nodiscard]] CpuSet cpus_of_flag(const CpuFlag& flag);

// The CPUs that this process may use now (affinity mask and cgroup).
[[nodiscard]] CpuSet current_cpus();

// Throws Fault when the kernel leaves none of them, and with `all_of_them` also when it leaves
// some out, which it does without a word: CPUs that went offline.
void bind_cpus(const CpuSet& cpus, bool all_of_them);

// Throws Fault: a malformed list, a node that is not there or has no memory, a kernel that is
// too old, a container that forbids it.
void set_memory_policy(const MemoryFlag& flag);

// The policy in force, in words: "bind: 0-1".
[[nodiscard]] std::string describe_memory_policy();

void disable_huge_pages();
[[nodiscard]] bool huge_pages_disabled();

}  // namespace atl::exec
