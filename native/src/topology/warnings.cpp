#include "warnings.hpp"

#include <cmath>
#include <cstdio>
#include <set>

#include "pus.hpp"

namespace atl::topology {
namespace {

constexpr std::uint64_t mebibyte = std::uint64_t{1} << 20;

std::string gibibytes(std::uint64_t bytes) {
  std::string text(32, '\0');
  const int length = std::snprintf(text.data(), text.size(), "%.1f GiB",
                                   static_cast<double>(bytes) / (1024.0 * mebibyte));
  text.resize(static_cast<std::size_t>(length));
  return text;
}

std::size_t cores_in(const Machine& machine, const Pus& pus) {
  return static_cast<std::size_t>(
      std::count_if(machine.cores.begin(), machine.cores.end(),
                    [&](const Core& core) { return contains(pus, core.pus); }));
}

template <typename Objects>
Objects with_cpus(const Objects& objects) {
  Objects found;
  std::copy_if(objects.begin(), objects.end(), std::back_inserter(found),
               [](const auto& object) { return !object.pus.empty(); });
  return found;
}

std::size_t packages_with_cpus(const Machine& machine) {
  return std::max<std::size_t>(1, with_cpus(machine.packages).size());
}

std::string counted(int number, const std::string& name) {
  return std::to_string(number) + ' ' + name + (number == 1 ? "" : "s");
}

// A recording only: elsewhere a node without CPUs is memory alone, since hwloc shows what the
// cgroup disallows.
void without_cpus(const Machine& machine, std::vector<Notice>& notices) {
  if (machine.kind != Kind::xml || machine.without_cpus.empty()) return;
  std::string lost;
  bool only_nodes = true;
  for (const auto& [name, number] : machine.without_cpus) {
    lost += (lost.empty() ? "" : ", ") + counted(number, name);
    only_nodes = only_nodes && name == "NUMA node";
  }
  notices.push_back(
      {"without-cpus", lost +
                           " without CPUs: a cgroup, a mask or 'lstopo --restrict' took them away "
                           "when the machine was recorded" +
                           (only_nodes ? ", or they are memory alone" : "") +
                           "; they count as in hwloc, but nothing can run there"});
}

void l3_per_cpu(const Machine& machine, std::vector<Notice>& notices) {
  const std::vector<L3Domain> l3s = with_cpus(machine.l3);
  if (l3s.size() < 2) return;
  bool one_pu = true;
  bool one_core = true;
  for (const L3Domain& l3 : l3s) {
    one_pu = one_pu && l3.pus.size() == 1;
    one_core = one_core && cores_in(machine, l3.pus) <= 1;
  }
  if (one_pu) {
    notices.push_back({"l3-per-cpu",
                       "every CPU reports its own L3 cache, as in virtual machines that do not "
                       "describe how caches are shared; these L3s do not count as chiplets "
                       "(name them with --chiplets if you know them)"});
  } else if (one_core) {
    notices.push_back({"l3-per-core",
                       "every core reports its own L3 cache; a chiplet has at least two cores, "
                       "so these L3s do not count as chiplets"});
  }
}

// On the market, the largest L3 that all cores of a package share has 16 MiB a core (3D-stacked
// desktop parts). A larger value means that other users have the rest of the cores.
void l3_huge_few_cpus(const Machine& machine, std::vector<Notice>& notices) {
  constexpr std::uint64_t most_per_core = 16 * mebibyte;
  const std::vector<L3Domain> l3s = with_cpus(machine.l3);
  if (l3s.size() != packages_with_cpus(machine)) return;
  for (const L3Domain& l3 : l3s) {
    const std::size_t cores = std::max<std::size_t>(1, cores_in(machine, l3.pus));
    if (l3.size_bytes / cores <= most_per_core) continue;
    notices.push_back(
        {"l3-huge-few-cpus", "one L3 cache of " + std::to_string(l3.size_bytes / mebibyte) +
                                 " MiB over " + std::to_string(cores) +
                                 (cores == 1 ? " core" : " cores") +
                                 ": this is probably a slice of a larger processor that shares its "
                                 "cache with others, and may hide chiplets"});
    return;
  }
}

// BIOSes of AMD servers can declare each L3 a NUMA node (ACPI SRAT L3 Cache as NUMA Domain).
// Intel's SNC also has a node per L3, but each of those nodes has its own memory channels.
void l3_as_numa(const Machine& machine, std::vector<Notice>& notices) {
  const bool intel = machine.cpu_vendor == "GenuineIntel";
  const bool amd = machine.cpu_vendor == "AuthenticAMD" || machine.cpu_vendor == "HygonGenuine";
  if (intel) return;
  std::set<Pus> l3s;
  for (const L3Domain& l3 : machine.l3) l3s.insert(l3.pus);
  std::size_t nodes = 0;
  for (const NumaNode& node : machine.nodes) {
    if (node.pus.empty()) continue;
    if (!l3s.contains(node.pus)) return;
    ++nodes;
  }
  const std::size_t per_package = nodes / packages_with_cpus(machine);
  if (per_package < 2) return;
  bool near = false;
  if (amd && machine.distances) {
    const auto& [numbers, values] = *machine.distances;
    for (std::size_t i = 0; i < values.size(); ++i) {
      for (std::size_t j = 0; j < values.size(); ++j) near = near || (i != j && values[i][j] <= 11);
    }
  }
  // Zen has at most 4 memory quadrants a package (NPS4).
  if (per_package <= 4 && !near) return;
  notices.push_back(
      {"l3-as-numa", "each of the " + std::to_string(nodes) +
                         " NUMA nodes is one L3 cache: the BIOS option 'L3 as NUMA' is on, and the "
                         "nodes are not memory controllers; binding memory to them is useless"});
}

void core_outside_chiplets(const Machine& machine, std::vector<Notice>& notices) {
  if (machine.chiplets.empty()) return;
  std::vector<int> inside;
  for (const Chiplet& chiplet : machine.chiplets) {
    inside.insert(inside.end(), chiplet.cores.begin(), chiplet.cores.end());
  }
  std::sort(inside.begin(), inside.end());
  std::vector<int> outside;
  for (int core = 0; core < static_cast<int>(machine.cores.size()); ++core) {
    if (!std::binary_search(inside.begin(), inside.end(), core)) outside.push_back(core);
  }
  if (outside.empty()) return;
  notices.push_back(
      {"core-outside-chiplets", std::to_string(outside.size()) + " of " +
                                    std::to_string(machine.cores.size()) + " cores (logical " +
                                    to_list(outside) +
                                    ") are in no chiplet: alone in their L3, or in a package "
                                    "without islands"});
}

void memory(const Machine& machine, std::vector<Notice>& notices) {
  if (machine.memory_bytes == 0) {
    notices.push_back({"no-memory-info", "no NUMA node reports its memory size"});
    return;
  }
  if (!machine.mem_total_bytes) return;
  const auto seen = static_cast<double>(machine.memory_bytes);
  const auto total = static_cast<double>(*machine.mem_total_bytes);
  constexpr double tolerance = 0.05;
  if (std::abs(seen - total) <= tolerance * std::max(seen, total)) return;
  notices.push_back({"memory-mismatch", "the NUMA nodes hold " + gibibytes(machine.memory_bytes) +
                                            " but /proc/meminfo says " +
                                            gibibytes(*machine.mem_total_bytes) +
                                            "; do not rely on the memory sizes per node"});
}

}  // namespace

std::vector<Notice> find_implausible(const Machine& machine) {
  std::vector<Notice> notices;
  without_cpus(machine, notices);
  l3_per_cpu(machine, notices);
  l3_huge_few_cpus(machine, notices);
  l3_as_numa(machine, notices);
  core_outside_chiplets(machine, notices);
  memory(machine, notices);
  if (!machine.has_core_objects) {
    notices.push_back({"cores-assumed", "the input has no cores; each of its " +
                                            std::to_string(machine.cores.size()) +
                                            " PUs counts as a core"});
  }
  return notices;
}

}  // namespace atl::topology
