// How much memory may be asked for without somebody being killed for it.
#pragma once

#include <cstdint>
#include <optional>

namespace atl::probe {

// The least of what the machine, this process's cgroup (version 2, and those above it) and the
// node can give, their page cache included. Fault (memory) for a node that is not there.
std::uint64_t available_bytes(std::optional<int> node);

}  // namespace atl::probe
