#include "atoll/runtime/victims.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace atl {
namespace {

// What all workers of one chiplet have in common for a thief on another chiplet.
struct Reach {
  bool other_node = false;
  int level = 0;
  Distance distance = Distance::chiplet;

  [[nodiscard]] std::pair<bool, int> rank() const { return {other_node, level}; }
};

std::vector<int> node_of_chiplet(const Places& places) {
  std::vector<int> nodes(static_cast<std::size_t>(places.chiplets()));
  for (const Core& core : places.cores) nodes[static_cast<std::size_t>(core.chiplet)] = core.node;
  return nodes;
}

std::vector<Reach> reaches(const Places& places, int thief) {
  const std::vector<int>& levels = places.chiplet_levels[static_cast<std::size_t>(thief)];
  const std::vector<int> nodes = node_of_chiplet(places);
  const int own_node = nodes[static_cast<std::size_t>(thief)];
  int farthest = 0;  // in the node
  for (std::size_t chiplet = 0; chiplet < levels.size(); ++chiplet) {
    if (nodes[chiplet] == own_node) farthest = std::max(farthest, levels[chiplet]);
  }
  std::vector<Reach> all;
  for (std::size_t chiplet = 0; chiplet < levels.size(); ++chiplet) {
    const int level = levels[chiplet];
    Distance distance = level < farthest ? Distance::near : Distance::node;
    if (static_cast<int>(chiplet) == thief) distance = Distance::chiplet;
    if (nodes[chiplet] != own_node) distance = Distance::elsewhere;
    all.push_back({nodes[chiplet] != own_node, level, distance});
  }
  return all;
}

void check(int index, std::size_t count, const char* what) {
  if (index < 0 || static_cast<std::size_t>(index) >= count) {
    throw RuntimeFault(std::string("there is no ") + what + " " + std::to_string(index) +
                       "; there are " + std::to_string(count));
  }
}

}  // namespace

Distance steal_distance(const Places& places, int thief, int victim) {
  check(thief, places.chiplet_levels.size(), "chiplet");
  check(victim, places.chiplet_levels.size(), "chiplet");
  return reaches(places, thief)[static_cast<std::size_t>(victim)].distance;
}

VictimOrder victims(const Places& places, std::span<const int> core_of_worker, int thief) {
  check(thief, core_of_worker.size(), "worker");
  for (const int core : core_of_worker) check(core, places.cores.size(), "core");
  const auto chiplet_of = [&](int worker) {
    const int core = core_of_worker[static_cast<std::size_t>(worker)];
    return places.cores[static_cast<std::size_t>(core)].chiplet;
  };
  const std::vector<Reach> reach = reaches(places, chiplet_of(thief));
  const auto reach_of = [&](int worker) -> const Reach& {
    return reach[static_cast<std::size_t>(chiplet_of(worker))];
  };
  VictimOrder order;
  for (int worker = 0; worker < static_cast<int>(core_of_worker.size()); ++worker) {
    if (worker != thief) order.workers.push_back(worker);
  }
  std::ranges::stable_sort(order.workers, {}, [&](int worker) { return reach_of(worker).rank(); });
  for (int at = 0; at < static_cast<int>(order.workers.size()); ++at) {
    const Reach& here = reach_of(order.workers[static_cast<std::size_t>(at)]);
    const bool goes_on =
        !order.rings.empty() &&
        reach_of(order.workers[static_cast<std::size_t>(at - 1)]).rank() == here.rank();
    if (!goes_on) order.rings.push_back({here.distance, at, at});
    order.rings.back().end = at + 1;
  }
  return order;
}

}  // namespace atl
