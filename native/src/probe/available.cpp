#include "available.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>

#include "base/cgroup.hpp"
#include "fault.hpp"

namespace atl::probe {

namespace {

constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();

// The number after `key` in a file with lines like "MemFree: 12 kB"; 0 if there is no such line.
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

std::uint64_t of_machine() { return number_after("/proc/meminfo", "MemAvailable:") * 1024; }

std::uint64_t of_node(int node) {
  const std::string folder = "/sys/devices/system/node/node" + std::to_string(node);
  if (!std::filesystem::exists(folder)) {
    // A kernel without NUMA has one node and no folder for it.
    if (node == 0 && !std::filesystem::exists("/sys/devices/system/node")) return kUnlimited;
    throw Fault(Code::kMemory, "node " + std::to_string(node) + " does not exist");
  }
  const std::string path = folder + "/meminfo";
  const std::uint64_t kib = number_after(path, "MemFree:") + number_after(path, "Inactive(file):") +
                            number_after(path, "Active(file):") / 2;
  return kib * 1024;
}

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

std::uint64_t of_groups() {
  std::uint64_t least = kUnlimited;
  base::each_cgroup("/", "", [&](const std::filesystem::path& folder, bool) {
    least = std::min(least, of_group(folder));
  });
  return least;
}

}  // namespace

std::uint64_t available_bytes(std::optional<int> node) {
  std::uint64_t least = std::min(of_machine(), of_groups());
  if (node) least = std::min(least, of_node(*node));
  return least;
}

}  // namespace atl::probe
