// The cgroups that this process is in. A limit of any of them holds, so readers look at all.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

namespace atl::base {

// Calls `look` for the folder of each cgroup of the process, from its own up to the root of what is
// mounted: of version 2 (`unified`), and of version 1 for that controller (none for ""). Reads
// /proc and /sys below `root` ("/" is this system); a missing file is not a fault.
void each_cgroup(
    const std::filesystem::path& root, const std::string& controller,
    const std::function<void(const std::filesystem::path& folder, bool unified)>& look);

}  // namespace atl::base
