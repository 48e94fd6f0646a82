// Checks the mapping of ranks to cores against its promises (mapping.hpp) on thousands of random
// machines; and algorithm 2 of ARCAS as printed, to show why we do not use it.
#include "atoll/runtime/mapping.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "controller/update_location.hpp"

namespace atl {
namespace {

using Random = std::mt19937;

int between(Random& random, int low, int high) {
  return std::uniform_int_distribution<int>(low, high)(random);
}

std::vector<int> sizes_of_chiplets(const Places& places) {
  std::vector<int> sizes(static_cast<std::size_t>(places.chiplets()));
  for (const Core& core : places.cores) ++sizes[static_cast<std::size_t>(core.chiplet)];
  return sizes;
}

std::map<int, std::set<int>> chiplets_of_nodes(const Places& places) {
  std::map<int, std::set<int>> found;
  for (const Core& core : places.cores) found[core.node].insert(core.chiplet);
  return found;
}

// "2 5 | 8 8 1": cores of the chiplets, a bar between nodes, '#' between packages.
std::string picture(const Places& places) {
  const std::vector<int> sizes = sizes_of_chiplets(places);
  std::string text;
  const Core* last = nullptr;
  for (const Core& core : places.cores) {
    if (last != nullptr && last->chiplet == core.chiplet) continue;
    if (last != nullptr && last->package != core.package) text += "# ";
    if (last != nullptr && last->node != core.node) text += "| ";
    text += std::to_string(sizes[static_cast<std::size_t>(core.chiplet)]) + " ";
    last = &core;
  }
  return text;
}

// Up to 2 x 3 x 4 chiplets of up to 8 cores; some with cores taken out, some with one node round
// all packages (AMD's NPS0).
Places random_places(unsigned seed) {
  Random random(seed);
  const int most = seed % 3 == 0 ? 8 : 3;  // small ones fail small
  int things = 1;
  std::string text;
  const std::pair<const char*, int> levels[] = {
      {"package:", 2}, {" node:", 3}, {" chiplet:", 4}, {" core:", most}};
  for (const auto& [name, largest] : levels) {
    text += name;
    int next = 0;
    for (int thing = 0; thing < things; ++thing) {
      const int count = between(random, 1, largest);
      text += (thing > 0 ? "," : "") + std::to_string(count);
      next += count;
    }
    things = next;
  }
  Places places = synthetic_places(text, {});
  if (seed % 4 == 1) {
    std::vector<int> left;
    for (int core = 0; core < static_cast<int>(places.cores.size()); ++core) {
      if (left.empty() || between(random, 0, 2) > 0) left.push_back(core);
    }
    places = restrict_to_cores(places, left);
  }
  if (seed % 8 == 2) {
    for (Core& core : places.cores) core.node = 0;
  }
  return places;
}

// The most cores that `count` chiplets can have under the rule of nodes: every set of them is
// looked at. 0: no set keeps to the rule.
std::vector<int> most_cores_by_looking_at_all(const Places& places) {
  const std::vector<int> sizes = sizes_of_chiplets(places);
  const std::map<int, std::set<int>> nodes = chiplets_of_nodes(places);
  std::vector<int> most(sizes.size() + 1);
  for (unsigned set = 1; set < 1U << sizes.size(); ++set) {
    int in_part = 0;
    for (const auto& [node, chiplets] : nodes) {
      const auto taken = std::ranges::count_if(
          chiplets, [&](int chiplet) { return (set >> static_cast<unsigned>(chiplet) & 1U) != 0; });
      in_part += taken > 0 && taken < std::ssize(chiplets) ? 1 : 0;
    }
    if (in_part > 1) continue;
    int count = 0;
    int cores = 0;
    for (std::size_t chiplet = 0; chiplet < sizes.size(); ++chiplet) {
      if ((set >> chiplet & 1U) == 0) continue;
      ++count;
      cores += sizes[chiplet];
    }
    most[static_cast<std::size_t>(count)] = std::max(most[static_cast<std::size_t>(count)], cores);
  }
  return most;
}

// The promise of mapping.hpp that a mapping breaks; empty if it keeps all.
std::string broken_promise(const Places& places, const std::vector<int>& cores, int threads,
                           int spread) {
  if (std::ssize(cores) != threads) return "number of ranks";
  for (const int core : cores) {
    if (core < 0 || core >= std::ssize(places.cores)) return "core out of range";
  }
  if (std::ssize(std::set<int>(cores.begin(), cores.end())) != threads) return "core used twice";
  std::vector<int> order;  // chiplets as the ranks meet them
  std::map<int, int> share;
  for (const int core : cores) {
    const int chiplet = places.cores[static_cast<std::size_t>(core)].chiplet;
    if (order.empty() || order.back() != chiplet) order.push_back(chiplet);
    ++share[chiplet];
  }
  if (order.size() != share.size()) return "ranks of a chiplet are not consecutive";
  if (std::ssize(share) != std::min(spread, threads)) return "number of chiplets";

  const std::vector<int> sizes = sizes_of_chiplets(places);
  int largest = 0;
  for (const auto& [chiplet, ranks] : share) largest = std::max(largest, ranks);
  for (const auto& [chiplet, ranks] : share) {
    const bool full = ranks == sizes[static_cast<std::size_t>(chiplet)];
    if (!full && ranks < largest - 1) return "shares differ by more than one";
  }

  const std::map<int, std::set<int>> nodes = chiplets_of_nodes(places);
  std::map<int, int> node_of_chiplet;
  for (const Core& core : places.cores) node_of_chiplet[core.chiplet] = core.node;
  for (std::size_t at = 1; at < order.size(); ++at) {
    const int node = node_of_chiplet[order[at - 1]];
    if (node_of_chiplet[order[at]] == node) continue;
    for (const int chiplet : nodes.at(node)) {
      if (std::find(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(at), chiplet) ==
          order.begin() + static_cast<std::ptrdiff_t>(at)) {
        return "a node is left before all its chiplets are used";
      }
    }
  }
  return "";
}

struct Failure {
  std::size_t cores = 0;
  std::string text;
};

// Keeps the smallest machine that fails.
void note(std::vector<Failure>& smallest, const Places& places, const std::string& what) {
  if (!smallest.empty() && smallest.front().cores <= places.cores.size()) return;
  smallest = {{places.cores.size(), what + "; chiplets: " + picture(places)}};
}

TEST(Mapping, KeepsItsPromisesOnRandomMachines) {
  std::vector<Failure> smallest;
  int mapped = 0;
  int refused = 0;
  for (unsigned seed = 0; seed < 3000; ++seed) {
    const Places places = random_places(seed);
    Random random(seed);
    const int threads = between(random, 1, static_cast<int>(places.cores.size()));
    const int spread = between(random, 1, places.chiplets());
    const std::string name = "seed " + std::to_string(seed) + ", " + std::to_string(threads) +
                             " threads, spread " + std::to_string(spread) + ": ";
    const int least = min_spread(places, threads);
    std::string broken;
    try {
      const std::vector<int> cores = spread_cores(places, threads, spread);
      broken = broken_promise(places, cores, threads, spread);
      if (spread < least) broken = "a spread below min_spread holds the threads";
      if (spread_cores(places, threads, spread) != cores) broken = "not the same twice";
      ++mapped;
    } catch (const RuntimeFault& fault) {
      if (spread >= least) broken = std::string("refused: ") + fault.what();
      ++refused;
    }
    if (!broken.empty()) note(smallest, places, name + broken);
  }
  for (const Failure& failure : smallest) ADD_FAILURE() << "smallest: " << failure.text;
  EXPECT_GT(mapped, 1000);
  EXPECT_GT(refused, 300);
}

TEST(Mapping, RefusesOnlyWhatNoChoiceOfChipletsHolds) {
  std::vector<Failure> smallest;
  int looked_at = 0;
  for (unsigned seed = 0; seed < 1500; ++seed) {
    const Places places = random_places(seed);
    if (places.chiplets() > 10) continue;
    ++looked_at;
    const std::vector<int> most = most_cores_by_looking_at_all(places);
    for (int spread = 1; spread <= places.chiplets(); ++spread) {
      const int holds = most[static_cast<std::size_t>(spread)];
      const std::string name = "seed " + std::to_string(seed) + ", spread " +
                               std::to_string(spread) + ", which can hold " +
                               std::to_string(holds) + ": ";
      try {
        const std::vector<int> cores = spread_cores(places, holds, spread);
        const std::string broken = broken_promise(places, cores, holds, spread);
        if (!broken.empty()) note(smallest, places, name + broken);
      } catch (const RuntimeFault& fault) {
        note(smallest, places, name + fault.what());
      }
      if (min_spread(places, holds) > spread) note(smallest, places, name + "min_spread");
      if (holds < std::ssize(places.cores) && min_spread(places, holds + 1) <= spread) {
        note(smallest, places, name + "min_spread of one more");
      }
    }
  }
  for (const Failure& failure : smallest) ADD_FAILURE() << "smallest: " << failure.text;
  EXPECT_GT(looked_at, 500);
}

TEST(Mapping, OneMoreChipletKeepsTheOthersWhereChipletsAreEqual) {
  const Places places = synthetic_places("package:2 node:2 chiplet:4 core:8", {});
  std::set<int> before;
  for (int spread = 2; spread <= 16; ++spread) {
    std::set<int> chiplets;
    for (const int core : spread_cores(places, 16, spread)) {
      chiplets.insert(places.cores[static_cast<std::size_t>(core)].chiplet);
    }
    EXPECT_TRUE(std::ranges::includes(chiplets, before)) << spread;
    before = chiplets;
  }
}

TEST(Mapping, APackageIsUsedUpBeforeTheNext) {
  const Places places = synthetic_places("package:2 node:2 chiplet:2 core:2,2,2,2,2,2,9,1", {});
  for (const int core : spread_cores(places, 4, 4)) {
    EXPECT_EQ(places.cores[static_cast<std::size_t>(core)].package, 1);  // the larger one
  }
}

TEST(Mapping, ANodeRoundTwoPackagesUsesUpOnePackageFirst) {
  Places places = synthetic_places("package:2 chiplet:3 core:2,5,2,4,4,4", {});
  for (Core& core : places.cores) core.node = 0;
  for (const int core : spread_cores(places, 3, 3)) {
    EXPECT_EQ(places.cores[static_cast<std::size_t>(core)].package, 1);  // 12 cores, not 9
  }
}

TEST(Mapping, Examples) {
  const Places equal = synthetic_places("node:2 chiplet:2 core:4", {});
  EXPECT_EQ(spread_cores(equal, 4, 1), (std::vector<int>{0, 1, 2, 3}));
  EXPECT_EQ(spread_cores(equal, 4, 2), (std::vector<int>{0, 1, 4, 5}));
  EXPECT_EQ(spread_cores(equal, 5, 3), (std::vector<int>{0, 1, 4, 5, 8}));
  EXPECT_EQ(spread_cores(equal, 2, 4), (std::vector<int>{0, 4}));
  EXPECT_EQ(min_spread(equal, 8), 2);
  EXPECT_EQ(min_spread(equal, 9), 3);
  // The larger node and in it the larger chiplet come first.
  const Places unequal = synthetic_places("node:2 chiplet:1,2 core:4,2,3", {});
  EXPECT_EQ(spread_cores(unequal, 3, 2), (std::vector<int>{6, 7, 4}));
  // Only the first node's chiplet holds 4; and only with it two hold 7.
  EXPECT_EQ(spread_cores(unequal, 4, 1), (std::vector<int>{0, 1, 2, 3}));
  EXPECT_EQ(spread_cores(unequal, 7, 2), (std::vector<int>{0, 1, 2, 3, 6, 7, 8}));
}

TEST(Mapping, SaysWhatCannotBe) {
  const Places places = synthetic_places("chiplet:3 core:4", {});
  const auto fault = [&](int threads, int spread) -> std::string {
    try {
      spread_cores(places, threads, spread);
    } catch (const RuntimeFault& found) {
      return found.what();
    }
    return "";
  };
  EXPECT_EQ(fault(0, 1), "0 threads: at least 1 is needed");
  EXPECT_EQ(fault(13, 3), "13 threads do not fit on 12 cores; map as many as there are cores");
  EXPECT_EQ(fault(4, 0), "spread 0: it must be from 1 to 3, the number of chiplets");
  EXPECT_EQ(fault(4, 4), "spread 4: it must be from 1 to 3, the number of chiplets");
  EXPECT_EQ(fault(9, 2),
            "9 threads do not fit on 2 chiplet(s), which hold 8; the smallest spread that holds "
            "them is 3");
  EXPECT_THROW(min_spread(places, 0), RuntimeFault);
  EXPECT_THROW(min_spread(places, 13), RuntimeFault);
}

// ---- Algorithm 2 as printed ----------------------------------------------------------------

using Printed = atl::runtime::UpdateLocation;

std::vector<int> cores_of(const Printed& machine, int threads, int spread) {
  std::vector<int> found;
  for (int rank = 0; rank < threads; ++rank) found.push_back(machine.core(rank, spread));
  return found;
}

std::size_t chiplets_used(const Printed& machine, int threads, int spread) {
  std::set<int> used;
  for (const int at : cores_of(machine, threads, spread)) {
    used.insert(at / machine.cores_per_chiplet);
  }
  return used.size();
}

TEST(PrintedAlgorithm2, PutsTwoRanksOnOneCore) {
  const Printed machine{.chiplets = 3, .cores_per_chiplet = 8};
  ASSERT_TRUE(machine.accepts(5, 2));
  EXPECT_EQ(machine.core(3, 2), 3);
  EXPECT_EQ(machine.core(4, 2), 3);
}

TEST(PrintedAlgorithm2, LeavesTheMachine) {
  const Printed machine{.chiplets = 16, .cores_per_chiplet = 8};
  ASSERT_TRUE(machine.accepts(31, 4));
  EXPECT_EQ(std::ranges::max(cores_of(machine, 31, 4)), 240);  // there are 128
}

TEST(PrintedAlgorithm2, UsesTheWrongNumberOfChiplets) {
  const Printed machine{.chiplets = 8, .cores_per_chiplet = 8};  // where cores are right
  ASSERT_TRUE(machine.accepts(15, 2));
  EXPECT_EQ(chiplets_used(machine, 15, 2), 4U);
  EXPECT_EQ(chiplets_used(machine, 4, 2), 1U);
}

TEST(PrintedAlgorithm2, RejectsAnExactFitAndDividesByZero) {
  const Printed machine{.chiplets = 16, .cores_per_chiplet = 8};
  EXPECT_FALSE(machine.accepts(8, 1));
  ASSERT_TRUE(machine.accepts(8, 9));
  EXPECT_EQ(machine.width(9), 0);
}

// 8 chiplets of 8, where the printed core numbers are right.
TEST(PrintedAlgorithm2, MovesThreadsOnlyWhereItsOwnCheckAndTheMachineAllow) {
  const Places places = synthetic_places("chiplet:8 core:8", {});
  const std::vector<int> now = {0, 1, 2, 3, 4, 5, 6, 7};
  using atl::runtime::update_location;
  EXPECT_EQ(update_location(places, now, 1), now) << "an exact fit is rejected";
  EXPECT_EQ(update_location(places, now, 2), (std::vector<int>{0, 1, 2, 3, 8, 9, 10, 11}));
  EXPECT_EQ(update_location(places, now, 8), (std::vector<int>{0, 8, 16, 24, 32, 40, 48, 56}));
  const Places few = synthetic_places("chiplet:2 core:4", {});
  EXPECT_EQ(update_location(few, std::vector<int>{0, 1, 2}, 3), (std::vector<int>{0, 1, 2}))
      << "there are two chiplets";
  const Places many = synthetic_places("chiplet:16 core:8", {});
  const std::vector<int> all(31, 5);
  const std::vector<int> moved = update_location(many, all, 4);
  EXPECT_EQ(moved[16], 5) << "core 128 does not exist";
  EXPECT_EQ(moved[2], 16);
  EXPECT_EQ(update_location(many, std::vector<int>{7}, 9), std::vector<int>{7}) << "width 0";
}

TEST(PrintedAlgorithm2, OursHoldsWhereItFails) {
  for (const Printed machine : {Printed{3, 8}, Printed{16, 8}, Printed{8, 8}}) {
    const Places places =
        synthetic_places("chiplet:" + std::to_string(machine.chiplets) + " core:8", {});
    for (int spread = 1; spread <= machine.chiplets; ++spread) {
      for (const int threads : {spread, spread * 8}) {
        EXPECT_EQ(broken_promise(places, spread_cores(places, threads, spread), threads, spread),
                  "");
      }
    }
  }
}

}  // namespace
}  // namespace atl
