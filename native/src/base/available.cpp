#include "base/available.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>

#include "base/cgroup.hpp"

namespace atl::base {

namespace {

constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();

// Bytes that one cgroup may still use.
std::uint64_t of_group(const std::filesystem::path& folder) {
  std::uint64_t most = kUnlimited;
  // Above `high` the kernel kills no process, but slows all of them down.
  for (const char* const limit : {"memory.max", "memory.high"}) {
    std::ifstream file(folder / limit);
    std::uint64_t bytes = 0;
    if (file >> bytes) most = std::min(most, bytes);  // else there is no file, or it has "max"
  }
  if (most == kUnlimited) return kUnlimited;
  std::ifstream current(folder / "memory.current");
  std::uint64_t used = 0;
  current >> used;
  const std::string stat = folder / "memory.stat";
  const std::uint64_t cache =
      number_after(stat, "inactive_file ") + number_after(stat, "active_file ") / 2;
  used -= std::min(used, cache);
  return most - std::min(most, used);
}

}  // namespace

std::uint64_t number_after(const std::string& path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const std::size_t at = line.find(key);
    // Match whole words: "active_file" is part of "inactive_file".
    if (at == std::string::npos || (at > 0 && line[at - 1] != ' ')) continue;
    const std::size_t digits = line.find_first_of("0123456789", at + key.size());
    if (digits == std::string::npos) continue;
    return std::strtoull(line.c_str() + digits, nullptr, 10);
  }
  return 0;
}

std::uint64_t available_bytes() {
  std::uint64_t least = number_after("/proc/meminfo", "MemAvailable:") * 1024;
  each_cgroup("/", "", [&](const std::filesystem::path& folder, bool) {
    least = std::min(least, of_group(folder));
  });
  return least;
}

}  // namespace atl::base
