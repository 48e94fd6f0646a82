// Levels between chiplets from an atoll/profile file (src/atoll/schema/profile.py is the format).
//
// `inference.levels` are groups of PUs, the nearest level first; atoll.infer makes them from the
// matrices, so that this file infers nothing. A pair has the level of its smallest common group.
#include <algorithm>
#include <array>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "atoll/runtime/places.hpp"
#include "build.hpp"
#include "json_input.hpp"

namespace atl {
namespace {

using runtime::Json;
using runtime::JsonInput;

constexpr int kUnknown = -1;
constexpr double kMostNs = 1e15;  // of the format
constexpr std::size_t kMostGroups =
    16384;  // SMT pairs of the most cores, twice: work grows with it

struct Group {
  std::set<int> cpus;
  int level = 0;
};

const Json& read_inference(const JsonInput& input) {
  const Json& inference = input.member(input.root(), "inference");
  if (inference.is_null()) {
    input.fail("it has no levels; measure them with 'atoll measure --only latency'");
  }
  return inference;
}

// By level. Empty if there are none: medians of levels that bandwidth shows are in GB/s.
std::vector<double> read_ns(const JsonInput& input, const Json& inference) {
  std::vector<double> medians;
  const Json source = inference.value("source", Json());
  if (source != "latency" && source != "both") return medians;
  for (const Json& level : input.list(inference, "levels")) {
    const Json& median = input.member(level, "median");
    const double ns = median.is_number() ? median.get<double>() : -1;
    if (!(ns >= 0 && ns <= kMostNs)) input.fail("'median' is not a number from 0 to 1e15");
    medians.push_back(ns);
  }
  return medians;
}

std::vector<Group> read_groups(const JsonInput& input, const Json& inference) {
  std::vector<Group> groups;
  int index = 0;
  for (const Json& level : input.list(inference, "levels")) {
    for (const Json& group : input.list(level, "groups")) {
      const std::vector<int> cpus = input.cpus(group, "groups");
      groups.push_back({{cpus.begin(), cpus.end()}, index});
      if (groups.size() > kMostGroups) input.fail("it has too many groups");
    }
    ++index;
  }
  std::ranges::stable_sort(groups, {}, [](const Group& group) { return group.cpus.size(); });
  return groups;
}

// The measured CPUs of each chiplet: a quick measurement omits some.
std::vector<std::vector<int>> measured_cpus(const Places& places,
                                            const std::vector<Group>& groups) {
  std::set<int> measured;
  for (const Group& group : groups) measured.insert(group.cpus.begin(), group.cpus.end());
  std::vector<std::vector<int>> found(static_cast<std::size_t>(places.chiplets()));
  for (const Core& core : places.cores) {
    for (const int cpu : core.cpus) {
      if (measured.contains(cpu)) found[static_cast<std::size_t>(core.chiplet)].push_back(cpu);
    }
  }
  return found;
}

using Levels = std::vector<std::vector<int>>;

Levels measured_levels(const std::vector<std::vector<int>>& cpus, std::vector<Group> groups) {
  Levels levels(cpus.size(), std::vector<int>(cpus.size(), kUnknown));
  // The smallest groups first: a pair takes the first group that contains both.
  for (const Group& group : groups) {
    std::vector<std::size_t> whole;  // chiplets in it
    for (std::size_t chiplet = 0; chiplet < cpus.size(); ++chiplet) {
      const bool inside =
          std::ranges::all_of(cpus[chiplet], [&](int cpu) { return group.cpus.contains(cpu); });
      if (inside && !cpus[chiplet].empty()) whole.push_back(chiplet);
    }
    for (const std::size_t from : whole) {
      for (const std::size_t to : whole) {
        if (levels[from][to] == kUnknown) levels[from][to] = group.level;
      }
    }
  }
  return levels;
}

// An unmeasured pair is as far as the farthest measured pair of its kind, or of all.
void fill_up(Levels& levels, const Levels& structure) {
  std::array<int, 4> farthest{};
  farthest.fill(kUnknown);
  int farthest_of_all = kUnknown;
  for (std::size_t from = 0; from < levels.size(); ++from) {
    for (std::size_t to = 0; to < levels.size(); ++to) {
      if (from == to) continue;
      int& kind = farthest[static_cast<std::size_t>(structure[from][to])];
      kind = std::max(kind, levels[from][to]);
      farthest_of_all = std::max(farthest_of_all, levels[from][to]);
    }
  }
  for (std::size_t from = 0; from < levels.size(); ++from) {
    for (std::size_t to = 0; to < levels.size(); ++to) {
      if (levels[from][to] != kUnknown) continue;
      const int kind = farthest[static_cast<std::size_t>(structure[from][to])];
      levels[from][to] = kind == kUnknown ? farthest_of_all + 1 : kind;
    }
  }
}

// 0 for a chiplet itself, and 1, 2, ... without gaps for what is between them. Returns the old
// level of each, of a chiplet itself kUnknown.
std::vector<int> renumber(Levels& levels) {
  std::set<int> used;
  for (std::size_t from = 0; from < levels.size(); ++from) {
    for (std::size_t to = 0; to < levels.size(); ++to) {
      if (from != to) used.insert(levels[from][to]);
    }
  }
  std::vector<int> sorted(used.begin(), used.end());
  for (std::size_t from = 0; from < levels.size(); ++from) {
    for (std::size_t to = 0; to < levels.size(); ++to) {
      const auto at = std::ranges::lower_bound(sorted, levels[from][to]);
      levels[from][to] = from == to ? 0 : static_cast<int>(at - sorted.begin()) + 1;
    }
  }
  sorted.insert(sorted.begin(), kUnknown);
  return sorted;
}

std::vector<double> in_new_order(const std::vector<double>& medians,
                                 const std::vector<int>& old_levels) {
  std::vector<double> level_ns;
  if (medians.empty()) return level_ns;
  for (const int level : old_levels) {
    const bool known = level >= 0 && level < static_cast<int>(medians.size());
    level_ns.push_back(known ? medians[static_cast<std::size_t>(level)] : 0);
  }
  return level_ns;
}

}  // namespace

Places places_with_profile(Places places, std::string_view profile_json) {
  const JsonInput input(profile_json, "atoll/profile", "atoll measure");
  const Json& emulated = input.member(input.root(), "emulated");
  if (!emulated.is_boolean() || emulated.get<bool>()) {
    input.fail("its CPU was emulated, so its figures mean nothing");
  }
  const Json& inference = read_inference(input);
  const std::vector<Group> groups = read_groups(input, inference);
  const std::vector<double> medians = read_ns(input, inference);
  const std::vector<std::vector<int>> cpus = measured_cpus(places, groups);
  Levels levels = measured_levels(cpus, groups);
  bool any = false;
  for (std::size_t from = 0; from < levels.size(); ++from) {
    for (std::size_t to = 0; to < from; ++to) any = any || levels[from][to] != kUnknown;
  }
  if (!any && levels.size() > 1) {
    input.fail(
        "it has no level for any two chiplets of this machine; measure here with 'atoll "
        "measure'");
  }
  fill_up(levels, runtime::structural_levels(places.cores));
  places.level_ns = in_new_order(medians, renumber(levels));
  places.chiplet_levels = std::move(levels);
  return places;
}

}  // namespace atl
