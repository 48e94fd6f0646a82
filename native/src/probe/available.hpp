// How much memory can be used without making the kernel kill a process.
#pragma once

#include <cstdint>
#include <optional>

namespace atl::probe {

// Returns the least of what the machine, this process's cgroup (version 2, and its ancestors) and
// the node can provide, including their page cache. Throws Fault (memory) for an unknown node.
std::uint64_t available_bytes(std::optional<int> node);

}  // namespace atl::probe
