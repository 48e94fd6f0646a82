#include "atoll/runtime/places.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include "build.hpp"

namespace atl {
namespace runtime {
namespace {

// Dense numbers for keys, in the order of the keys.
template <typename Key>
class Numbers {
 public:
  explicit Numbers(const std::set<Key>& keys) {
    for (const Key& key : keys) numbers_.emplace(key, static_cast<int>(numbers_.size()));
  }
  int operator()(const Key& key) const { return numbers_.at(key); }

 private:
  std::map<Key, int> numbers_;
};

}  // namespace

std::vector<std::vector<int>> structural_levels(const std::vector<Core>& cores) {
  std::map<int, const Core*> any_core;  // of each chiplet: all have its node and package
  for (const Core& core : cores) any_core.emplace(core.chiplet, &core);
  std::vector<std::vector<int>> levels;
  for (const auto& [chiplet, from] : any_core) {
    std::vector<int>& row = levels.emplace_back();
    for (const auto& [other, to] : any_core) {
      const int apart = from->package != to->package ? 3 : from->node != to->node ? 2 : 1;
      row.push_back(chiplet == other ? 0 : apart);
    }
  }
  return levels;
}

Places build_places(const std::vector<RawCore>& raw) {
  if (raw.empty()) throw RuntimeFault("no core is left to run on; widen the CPU mask or the set");
  if (raw.size() > static_cast<std::size_t>(kMostCores)) {
    throw RuntimeFault(std::to_string(raw.size()) + " cores: at most " +
                       std::to_string(kMostCores) + " can be used; take a part of them");
  }
  using ChipletKey = std::tuple<int, int, int>;
  const auto key_of = [](const RawCore& core) {
    return ChipletKey(core.package, core.node, core.chiplet);
  };
  // A chiplet's place among those of its node is that of its first core.
  std::map<ChipletKey, std::size_t> first_core;
  std::set<int> packages;
  for (std::size_t i = 0; i < raw.size(); ++i) {
    first_core.emplace(key_of(raw[i]), i);
    packages.insert(raw[i].package);
  }
  if (first_core.size() > static_cast<std::size_t>(kMostChiplets)) {
    throw RuntimeFault(std::to_string(first_core.size()) + " chiplets: at most " +
                       std::to_string(kMostChiplets) + " can be used; take a part of them");
  }
  const auto position_of = [&](const RawCore& core) {
    return ChipletKey(core.package, core.node, static_cast<int>(first_core.at(key_of(core))));
  };
  std::set<ChipletKey> positions;
  for (const RawCore& core : raw) positions.insert(position_of(core));
  const Numbers<ChipletKey> chiplet_number(positions);
  const Numbers<int> package_number(packages);

  Places places;
  for (const RawCore& core : raw) {
    Core& made = places.cores.emplace_back(Core{core.cpus, chiplet_number(position_of(core)),
                                                core.node, package_number(core.package)});
    std::ranges::sort(made.cpus);
    const auto repeated = std::ranges::unique(made.cpus);
    made.cpus.erase(repeated.begin(), repeated.end());
  }
  std::ranges::stable_sort(places.cores, {}, &Core::chiplet);

  places.chiplet_levels = structural_levels(places.cores);
  return places;
}

}  // namespace runtime

namespace {

template <typename Keep>
std::vector<int> indices(const Places& places, Keep keep) {
  std::vector<int> kept;
  for (std::size_t i = 0; i < places.cores.size(); ++i) {
    if (keep(places.cores[i])) kept.push_back(static_cast<int>(i));
  }
  return kept;
}

// `cores` are some of the places' cores, perhaps with fewer CPUs, already in the order of Places.
Places rebuilt(const Places& places, const std::vector<Core>& cores) {
  std::vector<runtime::RawCore> raw;
  std::set<int> chiplets;  // sorted as the new numbers will be
  for (const Core& core : cores) {
    raw.push_back({core.cpus, core.package, core.node, core.chiplet});
    chiplets.insert(core.chiplet);
  }
  Places made = runtime::build_places(raw);
  made.chiplet_l3_bytes = places.chiplet_l3_bytes;
  made.made_up = places.made_up;
  made.level_ns = places.level_ns;
  made.chiplet_levels.clear();
  for (const int from : chiplets) {
    std::vector<int>& row = made.chiplet_levels.emplace_back();
    for (const int to : chiplets) {
      row.push_back(places.chiplet_levels.at(static_cast<std::size_t>(from))
                        .at(static_cast<std::size_t>(to)));
    }
  }
  return made;
}

}  // namespace

int Places::chiplets() const { return static_cast<int>(chiplet_levels.size()); }

std::vector<int> Places::nodes() const {
  std::set<int> found;
  for (const Core& core : cores) found.insert(core.node);
  return {found.begin(), found.end()};
}

std::vector<int> Places::cores_of_chiplet(int chiplet) const {
  std::vector<int> found =
      indices(*this, [&](const Core& core) { return core.chiplet == chiplet; });
  if (found.empty()) {
    throw RuntimeFault("there is no chiplet " + std::to_string(chiplet) + "; there are 0 to " +
                       std::to_string(chiplets() - 1));
  }
  return found;
}

std::vector<int> Places::cores_of_node(int os_index) const {
  std::vector<int> found = indices(*this, [&](const Core& core) { return core.node == os_index; });
  if (found.empty()) {
    throw RuntimeFault("no core is of NUMA node " + std::to_string(os_index) +
                       "; nodes() lists those that have some");
  }
  return found;
}

Places restrict_to_cores(const Places& places, std::span<const int> cores) {
  const std::set<int> wanted(cores.begin(), cores.end());
  const int count = static_cast<int>(places.cores.size());
  if (!wanted.empty() && (*wanted.begin() < 0 || *wanted.rbegin() >= count)) {
    const int strange = *wanted.begin() < 0 ? *wanted.begin() : *wanted.rbegin();
    throw RuntimeFault("there is no core " + std::to_string(strange) + "; there are 0 to " +
                       std::to_string(count - 1));
  }
  std::vector<Core> kept;
  for (const int core : wanted) kept.push_back(places.cores[static_cast<std::size_t>(core)]);
  return rebuilt(places, kept);
}

Places restrict_to_cpus(const Places& places, std::span<const int> cpus) {
  const std::set<int> wanted(cpus.begin(), cpus.end());
  std::vector<Core> kept;
  for (Core core : places.cores) {
    std::erase_if(core.cpus, [&](int cpu) { return !wanted.contains(cpu); });
    if (!core.cpus.empty()) kept.push_back(std::move(core));
  }
  return rebuilt(places, kept);
}

}  // namespace atl
