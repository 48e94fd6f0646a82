// Rings of victims: who is in which, for machines with and without measured levels.
#include "atoll/runtime/victims.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <set>
#include <vector>

namespace atl {
namespace {

std::vector<int> one_per_core(const Places& places) {
  std::vector<int> cores(places.cores.size());
  std::iota(cores.begin(), cores.end(), 0);
  return cores;
}

// Each ring as its distance and its workers.
using Rings = std::vector<std::pair<Distance, std::vector<int>>>;
Rings rings(const Places& places, const std::vector<int>& core_of_worker, int thief) {
  const VictimOrder order = victims(places, core_of_worker, thief);
  Rings found;
  for (const VictimRing& ring : order.rings) {
    const std::span<const int> workers = order.of(ring);
    found.emplace_back(ring.distance, std::vector<int>(workers.begin(), workers.end()));
  }
  return found;
}

TEST(Victims, GoFromTheChipletToTheOtherPackage) {
  const Places places = synthetic_places("package:2 node:2 chiplet:2 core:2", {});
  EXPECT_EQ(rings(places, one_per_core(places), 5),
            (Rings{{Distance::chiplet, {4}},
                   {Distance::node, {6, 7}},
                   {Distance::elsewhere, {0, 1, 2, 3}},
                   {Distance::elsewhere, {8, 9, 10, 11, 12, 13, 14, 15}}}));
}

TEST(Victims, MeasuredLevelsMakeNearRings) {
  Places places = synthetic_places("node:2 chiplet:4,1 core:1", {});
  places.chiplet_levels = {
      {0, 1, 2, 4, 3}, {1, 0, 4, 2, 3}, {2, 4, 0, 1, 3}, {4, 2, 1, 0, 3}, {3, 3, 3, 3, 0}};
  // Chiplet 4 measures nearer than 3, but it is on another node.
  EXPECT_EQ(rings(places, one_per_core(places), 0), (Rings{{Distance::near, {1}},
                                                           {Distance::near, {2}},
                                                           {Distance::node, {3}},
                                                           {Distance::elsewhere, {4}}}));
}

TEST(Victims, WorkersOfOneCoreAreNearest) {
  const Places places = synthetic_places("chiplet:2 core:2", {});
  EXPECT_EQ(rings(places, {3, 0, 3, 3, 1}, 2),
            (Rings{{Distance::chiplet, {0, 3}}, {Distance::node, {1, 4}}}));
}

TEST(Victims, AnEmptyRingIsLeftOutAndALoneWorkerHasNone) {
  const Places places = synthetic_places("node:2 chiplet:2 core:2", {});
  EXPECT_EQ(rings(places, {0, 7}, 0), (Rings{{Distance::elsewhere, {1}}}));
  EXPECT_EQ(rings(places, {3}, 0), Rings{});
}

TEST(Victims, RefusesWhatIsNotThere) {
  const Places places = synthetic_places("core:2", {});
  EXPECT_THROW(victims(places, std::vector<int>{0, 2}, 0), RuntimeFault);
  EXPECT_THROW(victims(places, std::vector<int>{0, -1}, 0), RuntimeFault);
  EXPECT_THROW(victims(places, std::vector<int>{0, 1}, 2), RuntimeFault);
  EXPECT_THROW(victims(places, std::vector<int>{0, 1}, -1), RuntimeFault);
  EXPECT_THROW(steal_distance(places, 0, 1), RuntimeFault);
  EXPECT_THROW(steal_distance(places, -1, 0), RuntimeFault);
}

// Every other worker is in exactly one ring, none in a nearer ring is farther, and rings are as
// their distance says: random workers on machines with random levels.
TEST(Victims, RingsAreAPartitionByDistance) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const auto below = [&](int end) {
      return static_cast<int>(random() % static_cast<unsigned>(end));
    };
    Places places = synthetic_places("package:2 node:2 chiplet:3,1,2,2 core:2", {});
    for (std::size_t a = 0; seed % 2 == 1 && a < places.chiplet_levels.size(); ++a) {
      for (std::size_t b = 0; b < a; ++b) {
        places.chiplet_levels[a][b] = places.chiplet_levels[b][a] = 1 + below(5);
      }
    }
    std::vector<int> core_of_worker;
    for (int workers = 1 + below(24); workers > 0; --workers) {
      core_of_worker.push_back(below(static_cast<int>(places.cores.size())));
    }
    const auto core_of = [&](int worker) {
      const int core = core_of_worker[static_cast<std::size_t>(worker)];
      return places.cores[static_cast<std::size_t>(core)];
    };
    const int thief = below(static_cast<int>(core_of_worker.size()));
    const Core own = core_of(thief);
    const VictimOrder order = victims(places, core_of_worker, thief);

    std::set<int> seen{thief};
    int expected_begin = 0;
    std::pair<bool, int> last{false, -1};
    for (const VictimRing& ring : order.rings) {
      ASSERT_EQ(ring.begin, expected_begin);
      ASSERT_LT(ring.begin, ring.end);
      expected_begin = ring.end;
      std::set<std::pair<bool, int>> reaches;
      for (const int worker : order.of(ring)) {
        EXPECT_TRUE(seen.insert(worker).second);
        const Core core = core_of(worker);
        reaches.emplace(core.node != own.node,
                        places.chiplet_levels[static_cast<std::size_t>(own.chiplet)]
                                             [static_cast<std::size_t>(core.chiplet)]);
        EXPECT_EQ(ring.distance, steal_distance(places, own.chiplet, core.chiplet));
        EXPECT_EQ(ring.distance == Distance::chiplet, core.chiplet == own.chiplet);
        EXPECT_EQ(ring.distance == Distance::elsewhere, core.node != own.node);
      }
      ASSERT_EQ(reaches.size(), 1U);
      EXPECT_LT(last, *reaches.begin());
      last = *reaches.begin();
    }
    EXPECT_EQ(expected_begin, std::ssize(order.workers));
    EXPECT_EQ(seen.size(), core_of_worker.size());
  }
}

}  // namespace
}  // namespace atl
