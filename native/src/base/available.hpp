// How much memory can be used without making the kernel kill a process.
#pragma once

#include <cstdint>
#include <string>

namespace atl::base {

// Returns the least of what the machine and this process's cgroup (version 2, and its ancestors)
// can provide, including their page cache.
std::uint64_t available_bytes();

// Returns the number after `key` in a file with lines like "MemFree: 12 kB"; 0 without such a line
// or file. The key must begin a line or follow a blank.
std::uint64_t number_after(const std::string& path, const std::string& key);

}  // namespace atl::base
