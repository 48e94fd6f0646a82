// Places from an atoll/machine file (src/atoll/schema/machine.py is the format).
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "atoll/runtime/places.hpp"
#include "build.hpp"
#include "json_input.hpp"

namespace atl {
namespace {

using runtime::Json;
using runtime::JsonInput;

constexpr int kMostIndex = 1 << 20;  // of packages and nodes; far above any machine
constexpr int kNoChiplet = -1;

class MachineReader {
 public:
  explicit MachineReader(std::string_view text)
      : input_(text, "atoll/machine", "atoll topo --json") {
    read_chiplets();
    read_nodes();
  }

  [[nodiscard]] std::vector<runtime::RawCore> cores() const {
    const Json& allowed = input_.member(input_.root(), "allowed");
    const std::vector<int> list = input_.cpus(input_.list(allowed, "pus"), "allowed.pus");
    const std::set<int> usable(list.begin(), list.end());
    std::vector<runtime::RawCore> found;
    std::set<int> seen;
    for (const Json& core : input_.list(input_.root(), "cores")) {
      std::vector<int> cpus = input_.cpus(input_.list(core, "pus"), "pus");
      for (const int cpu : cpus) {
        if (!seen.insert(cpu).second) {
          input_.fail("CPU " + std::to_string(cpu) + " is in two cores");
        }
      }
      if (cpus.empty()) continue;
      runtime::RawCore made{{},
                            std::max(0, input_.number_or_null(core, "package", kMostIndex)),
                            node_of(core, cpus.front()),
                            chiplet_of(cpus)};
      std::erase_if(cpus, [&](int cpu) { return !usable.contains(cpu); });
      if (cpus.empty()) continue;
      made.cpus = std::move(cpus);
      found.push_back(std::move(made));
    }
    return found;
  }

  // 0 where a chiplet's is not known.
  [[nodiscard]] std::uint64_t smallest_l3_bytes() const {
    return l3_bytes_.empty() ? 0 : *std::ranges::min_element(l3_bytes_);
  }

 private:
  void read_chiplets() {
    int index = 0;
    for (const Json& chiplet : input_.list(input_.root(), "chiplets")) {
      for (const int cpu : input_.cpus(input_.list(chiplet, "pus"), "pus")) {
        if (!chiplet_of_cpu_.emplace(cpu, index).second) {
          input_.fail("CPU " + std::to_string(cpu) + " is in two chiplets");
        }
      }
      // The format's default for it is 0.
      const Json bytes = chiplet.value("l3_bytes", Json(0U));
      if (!bytes.is_number_unsigned()) input_.fail("'l3_bytes' is not a number");
      l3_bytes_.push_back(bytes.get<std::uint64_t>());
      ++index;
    }
  }

  // A core of several nodes (DRAM and HBM) names none; its own is then the first that has memory.
  void read_nodes() {
    std::vector<std::tuple<bool, int, std::vector<int>>> nodes;
    for (const Json& node : input_.list(input_.root(), "nodes")) {
      const Json& bytes = input_.member(node, "memory_bytes");
      if (!bytes.is_number_unsigned()) input_.fail("'memory_bytes' is not a number");
      nodes.emplace_back(bytes == 0U,
                         input_.number(input_.member(node, "os_index"), kMostIndex, "os_index"),
                         input_.cpus(input_.list(node, "pus"), "pus"));
    }
    std::ranges::sort(nodes);
    for (const auto& [empty, os_index, cpus] : nodes) {
      for (const int cpu : cpus) node_of_cpu_.emplace(cpu, os_index);
      if (first_node_ < 0) first_node_ = os_index;
    }
  }

  [[nodiscard]] int node_of(const Json& core, int cpu) const {
    const int named = input_.number_or_null(core, "node", kMostIndex);
    if (named >= 0) return named;
    const auto found = node_of_cpu_.find(cpu);
    return found == node_of_cpu_.end() ? std::max(0, first_node_) : found->second;
  }

  [[nodiscard]] int chiplet_of(const std::vector<int>& cpus) const {
    std::set<int> found;
    for (const int cpu : cpus) {
      const auto chiplet = chiplet_of_cpu_.find(cpu);
      found.insert(chiplet == chiplet_of_cpu_.end() ? kNoChiplet : chiplet->second);
    }
    if (found.size() > 1) {
      input_.fail("the core of CPU " + std::to_string(cpus.front()) + " is only in part in a " +
                  "chiplet");
    }
    return *found.begin();
  }

  JsonInput input_;
  std::vector<std::uint64_t> l3_bytes_;  // of the chiplets
  std::map<int, int> chiplet_of_cpu_;
  std::map<int, int> node_of_cpu_;
  int first_node_ = -1;
};

}  // namespace

Places places_from_machine(std::string_view machine_json) {
  const MachineReader machine(machine_json);
  Places places = runtime::build_places(machine.cores());
  places.chiplet_l3_bytes = machine.smallest_l3_bytes();
  return places;
}

}  // namespace atl
