#include "available.hpp"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <string>

#include "base/available.hpp"
#include "fault.hpp"

namespace atl::probe {

namespace {

std::uint64_t of_node(int node) {
  const std::string folder = "/sys/devices/system/node/node" + std::to_string(node);
  if (!std::filesystem::exists(folder)) {
    // A kernel without NUMA has one node and no folder for it.
    if (node == 0 && !std::filesystem::exists("/sys/devices/system/node")) {
      return std::numeric_limits<std::uint64_t>::max();
    }
    throw Fault(Code::kMemory, "node " + std::to_string(node) + " does not exist");
  }
  const std::string path = folder + "/meminfo";
  const auto kib = [&](const char* key) { return base::number_after(path, key); };
  return (kib("MemFree:") + kib("Inactive(file):") + kib("Active(file):") / 2) * 1024;
}

}  // namespace

std::uint64_t available_bytes(std::optional<int> node) {
  std::uint64_t least = base::available_bytes();
  if (node) least = std::min(least, of_node(*node));
  return least;
}

}  // namespace atl::probe
