#include "system.hpp"

#include <sched.h>

#include <charconv>
#include <fstream>

#include "base/cgroup.hpp"
#include "pus.hpp"

namespace atl::topology {
namespace {

namespace fs = std::filesystem;

std::optional<std::string> read_line(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  return line;
}

std::optional<std::uint64_t> to_number(const std::string& text) {
  std::uint64_t value = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (fault != std::errc{} || end == text.data()) return std::nullopt;
  return value;
}

Pus read_cpus(const fs::path& path) {
  Pus pus;
  const auto line = read_line(path);
  if (!line || !from_list(*line, pus)) return {};
  return pus;
}

// "0000:03:00.1": domain (4 or more digits), bus, device, function.
bool is_pci_address(const std::string& name) {
  const std::size_t bus = name.find(':');
  return bus != std::string::npos && bus >= 4 && name.size() == bus + 8 && name[bus + 3] == ':' &&
         name[bus + 6] == '.';
}

void tighten(std::optional<std::uint64_t>& limit, std::optional<std::uint64_t> other) {
  // Without a limit v1 reports 2^63 rounded down to pages.
  constexpr std::uint64_t no_limit = std::uint64_t{1} << 60;
  if (other && *other < no_limit && (!limit || *other < *limit)) limit = other;
}

}  // namespace

Pus offline_cpus(const fs::path& root) {
  const fs::path cpus = root / "sys/devices/system/cpu";
  const Pus offline = read_cpus(cpus / "offline");
  // `offline` also lists CPUs that could be plugged in but are not present.
  return intersection(offline, read_cpus(cpus / "present"));
}

std::optional<std::uint64_t> mem_total_bytes(const fs::path& root) {
  const auto line = read_line(root / "proc/meminfo");
  const std::string key = "MemTotal:";
  if (!line || !line->starts_with(key)) return std::nullopt;
  const std::size_t digits = line->find_first_not_of(' ', key.size());
  if (digits == std::string::npos) return std::nullopt;
  const auto kibibytes = to_number(line->substr(digits));
  if (!kibibytes) return std::nullopt;
  return *kibibytes * 1024;
}

std::vector<Nic> network_interfaces(const fs::path& root) {
  constexpr std::uint64_t most_mbit_s = 100'000'000;  // some old drivers say 2^32 - 1 for unknown
  std::vector<Nic> nics;
  std::error_code fault;
  for (const auto& entry : fs::directory_iterator(root / "sys/class/net", fault)) {
    // Virtual interfaces (lo, bridges) have no `device`.
    fs::path device = fs::canonical(entry.path() / "device", fault);
    if (fault) continue;
    Nic nic{.name = entry.path().filename().string(),
            .node = std::nullopt,
            .pci = "",
            .rate_mbit_s = std::nullopt};
    // -1, or an error, while the link is down and where the driver knows no rate.
    const auto line = read_line(entry.path() / "speed");
    const auto rate = line ? to_number(*line) : std::nullopt;
    if (rate && *rate > 0 && *rate <= most_mbit_s) nic.rate_mbit_s = static_cast<int>(*rate);
    // The node and the address belong to the device itself or, for virtio and the like, to
    // the PCI device above it.
    for (; device.has_relative_path(); device = device.parent_path()) {
      if (!nic.node) {
        const auto line = read_line(device / "numa_node");
        const auto number = line ? to_number(*line) : std::nullopt;
        if (number) nic.node = static_cast<int>(*number);
      }
      if (is_pci_address(device.filename().string())) {
        nic.pci = device.filename().string();
        break;
      }
    }
    nics.push_back(std::move(nic));
  }
  std::sort(nics.begin(), nics.end(), [](const Nic& a, const Nic& b) { return a.name < b.name; });
  return nics;
}

std::optional<std::uint64_t> memory_max_bytes(const fs::path& root) {
  std::optional<std::uint64_t> limit;
  base::each_cgroup(root, "memory", [&](const fs::path& folder, bool unified) {
    const auto line = read_line(folder / (unified ? "memory.max" : "memory.limit_in_bytes"));
    if (line) tighten(limit, to_number(*line));
  });
  return limit;
}

Pus affinity() {
  // The kernel refuses a mask shorter than its own; grow until it fits.
  for (int cpus = 1024; cpus <= 1 << 20; cpus *= 2) {
    cpu_set_t* mask = CPU_ALLOC(cpus);
    if (mask == nullptr) return {};
    const std::size_t bytes = CPU_ALLOC_SIZE(cpus);
    const bool fits = sched_getaffinity(0, bytes, mask) == 0;
    Pus pus;
    for (int cpu = 0; fits && cpu < cpus; ++cpu) {
      if (CPU_ISSET_S(static_cast<std::size_t>(cpu), bytes, mask)) pus.push_back(cpu);
    }
    CPU_FREE(mask);
    if (fits) return pus;
  }
  return {};
}

}  // namespace atl::topology
