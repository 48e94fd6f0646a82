#include "chiplets.hpp"

#include <set>

#include "pus.hpp"

namespace atl::topology {
namespace {

struct Grouping {
  const char* name;  // atoll.schema.machine.ChipletSource
  std::set<Pus> domains;
};

// In order of precedence. Sets, because nodes with different memories can share their CPUs.
std::vector<Grouping> groupings_of(const Machine& machine) {
  std::vector<Grouping> groupings{{"l3", {}}, {"die", {}}, {"sub-numa", {}}};
  for (const L3Domain& l3 : machine.l3) groupings[0].domains.insert(l3.pus);
  for (const Die& die : machine.dies) groupings[1].domains.insert(die.pus);
  for (const NumaNode& node : machine.nodes) groupings[2].domains.insert(node.pus);
  return groupings;
}

std::vector<int> cores_within(const Machine& machine, const Pus& pus) {
  std::vector<int> cores;
  for (std::size_t core = 0; core < machine.cores.size(); ++core) {
    if (contains(pus, machine.cores[core].pus)) cores.push_back(static_cast<int>(core));
  }
  return cores;
}

std::uint64_t l3_bytes_of(const Machine& machine, const Pus& pus) {
  std::uint64_t bytes = 0;
  for (const L3Domain& l3 : machine.l3) {
    if (!l3.pus.empty() && contains(pus, l3.pus)) bytes += l3.size_bytes;
  }
  return bytes;
}

std::vector<Chiplet> chiplets_in(const Machine& machine, const std::vector<Grouping>& groupings,
                                 const Pus& whole, MaybeIndex package) {
  for (const Grouping& grouping : groupings) {
    std::vector<Pus> inside;
    for (const Pus& domain : grouping.domains) {
      if (domain.size() < whole.size() && contains(whole, domain)) inside.push_back(domain);
    }
    std::vector<Chiplet> found;
    for (const Pus& domain : inside) {
      // Nodes nest if a package has its own memory in addition to its clusters' (KNL, Xeon Max):
      // the inner nodes are the islands.
      const bool encloses = std::any_of(inside.begin(), inside.end(), [&](const Pus& other) {
        return !other.empty() && other.size() < domain.size() && contains(domain, other);
      });
      if (encloses) continue;
      std::vector<int> cores = cores_within(machine, domain);
      if (cores.size() < 2) continue;
      Chiplet chiplet{.pus = domain,
                      .cores = std::move(cores),
                      .node = local_node(machine.nodes, domain),
                      .package = package,
                      .source = grouping.name,
                      .l3_bytes = l3_bytes_of(machine, domain)};
      found.push_back(std::move(chiplet));
    }
    if (!found.empty()) return found;
  }
  return {};
}

}  // namespace

std::vector<Chiplet> find_chiplets(const Machine& machine) {
  const std::vector<Grouping> groupings = groupings_of(machine);
  std::vector<Chiplet> all;
  for (std::size_t package = 0; package < machine.packages.size(); ++package) {
    auto found =
        chiplets_in(machine, groupings, machine.packages[package].pus, static_cast<int>(package));
    std::move(found.begin(), found.end(), std::back_inserter(all));
  }
  if (machine.packages.empty()) {
    Pus whole;
    for (const Core& core : machine.cores) {
      whole.insert(whole.end(), core.pus.begin(), core.pus.end());
    }
    std::sort(whole.begin(), whole.end());
    // Without packages a NUMA node may not be smaller than a package: usually it is a package.
    const std::vector<Grouping> inside_packages(groupings.begin(), groupings.begin() + 2);
    all = chiplets_in(machine, inside_packages, whole, std::nullopt);
  }
  std::sort(all.begin(), all.end(),
            [](const Chiplet& a, const Chiplet& b) { return a.cores.front() < b.cores.front(); });
  return all;
}

}  // namespace atl::topology
