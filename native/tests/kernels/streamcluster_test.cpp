// StreamCluster against plain sums, known clusters, and the smallest inputs.
#include "streamcluster/streamcluster.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <vector>

#include "kernels/running.hpp"
#include "vectors.hpp"

namespace atl::kernels {
namespace {

// Points close around some places far apart.
struct Places {
  Array<float> rows;
  std::vector<float> weights;
  Points points;

  Places(const Memory& memory, std::size_t places, std::size_t of_each, std::size_t dimensions)
      : rows(make_array<float>(memory, places * of_each * padded(dimensions))),
        weights(places * of_each),
        points{rows.data(), weights.data(), weights.size(), padded(dimensions)} {
    std::mt19937 random(3);
    std::normal_distribution<float> near(0, 0.01F);
    for (std::size_t point = 0; point < points.count; ++point) {
      weights[point] = static_cast<float>(1 + random() % 3);
      const std::size_t place = point % places;
      for (std::size_t at = 0; at < dimensions; ++at) {
        rows[point * points.stride + at] =
            static_cast<float>((place >> (at % 8)) & 1) + near(random);
      }
    }
  }
};

TEST(LocalSearch, FindsPlacesThatLieApart) {
  for (const auto& [scheduler, workers] : teams()) {
    with_team(scheduler, workers, [&](Team& team, const Memory& memory) {
      const Places known(memory, 5, 200, 20);
      for (const bool keep : {false, true}) {
        const Clustering found = local_search(team, memory, known.points, {5, 5, keep}, 1);
        std::set<std::size_t> places;
        for (const std::uint32_t center : found.centers) places.insert(center % 5);
        EXPECT_EQ(places.size(), 5u) << scheduler << workers;
        EXPECT_EQ(found.centers.size(), 5u);
        for (std::size_t point = 0; point < known.points.count; ++point) {
          EXPECT_EQ(found.centers.at(found.of.at(point)) % 5, point % 5);
        }
        EXPECT_NEAR(found.cost, plain_cost(known.points, found), 1e-5 * found.cost);
      }
    });
  }
}

TEST(LocalSearch, KeptDistancesChangeNothing) {
  with_team("os", 1, [](Team& team, const Memory& memory) {
    const Places known(memory, 100, 20, 33);
    for (const std::uint64_t seed : {1u, 2u, 3u}) {
      const Clustering again = local_search(team, memory, known.points, {5, 9, false}, seed);
      const Clustering kept = local_search(team, memory, known.points, {5, 9, true}, seed);
      EXPECT_EQ(again.centers, kept.centers);
      EXPECT_EQ(again.of, kept.of);
      EXPECT_LT(kept.traffic_bytes, again.traffic_bytes);
      EXPECT_GE(again.centers.size(), 5u);
      EXPECT_LE(again.centers.size(), 9u);
      EXPECT_NEAR(again.cost, plain_cost(known.points, again), 1e-5 * again.cost);
    }
  });
}

TEST(LocalSearch, EndsThoughNoCostGivesAsManyCentersAsAreWanted) {
  with_team("atoll", 2, [](Team& team, const Memory& memory) {
    Places same(memory, 1, 200, 3);
    std::fill(same.rows.begin(), same.rows.end(), 0.5F);
    const Clustering one = local_search(team, memory, same.points, {4, 8}, 1);
    EXPECT_EQ(one.cost, 0);
    EXPECT_EQ(one.centers.size(), 1u);
    for (std::size_t point = 0; point < 100; ++point) same.rows[point * same.points.stride] = 7;
    const Clustering two = local_search(team, memory, same.points, {4, 8}, 1);
    EXPECT_EQ(two.cost, 0);
    EXPECT_EQ(two.centers.size(), 2u);
  });
}

TEST(StreamCluster, TheChecksAreOfTheirOwn) {
  with_team("os", 2, [](Team& team, const Memory& memory) {
    Array<float> rows = make_array<float>(memory, 3 * kLane);
    rows[0] = 1;          // (1, 0)
    rows[kLane + 1] = 2;  // (0, 2)
    rows[2 * kLane] = 5;  // (5, 0)
    const std::vector<float> weights = {1, 2, 3};
    const Points points{rows.data(), weights.data(), 3, kLane};
    EXPECT_EQ(plain_cost(points, {{0}, {0, 0, 0}}), 2 * 5 + 3 * 16);
    EXPECT_EQ(plain_cost(points, {{0, 2}, {0, 0, 1}}), 2 * 5);
    EXPECT_EQ(nearest_cost(team, points, std::vector<float>(rows.begin(), rows.begin() + kLane)),
              5 + 16);
    EXPECT_EQ(nearest_cost(team, points, plus_plus(points, 3, 1)), 0);
  });
}

TEST(StreamCluster, IsRightOnEveryTeam) {
  for (const auto& [scheduler, workers] : teams()) {
    for (const char* const distances : {"again", "kept"}) {
      const Result result = run_workload(streamcluster(), scheduler, workers,
                                         {{"points", "1500"},
                                          {"chunk", "1100"},
                                          {"dimensions", "20"},
                                          {"least-centers", "3"},
                                          {"most-centers", "6"},
                                          {"distances", distances}});
      EXPECT_EQ(result.work, 1500);
      EXPECT_GE(result.figures.at(0).second, 3);
      EXPECT_LE(result.figures.at(0).second, 6);
    }
  }
}

TEST(StreamCluster, TakesTheSmallestInputs) {
  for (const char* const points : {"1", "2", "21", "25"}) {
    for (const char* const least : {"1", "2", "20"}) {
      (void)run_workload(streamcluster(), "atoll", 2,
                         {{"points", points}, {"dimensions", "1"}, {"least-centers", least}});
    }
  }
}

TEST(StreamCluster, SaysWhatKeptDistancesTake) {
  std::map<std::string, std::string> values = {{"points", "100000"},
                                               {"distances", "kept"},
                                               {"least-centers", "1000"},
                                               {"most-centers", "1000"}};
  for (const Parameter& each : streamcluster().parameters) {
    values.emplace(each.name, each.otherwise);
  }
  // 3 k ln k candidates.
  EXPECT_GT(streamcluster().needed(Settings(values), 2), 20'723u * 100'000u * sizeof(float));
}

TEST(StreamCluster, RefusesLimitsThatContradict) {
  EXPECT_THROW((void)run_workload(streamcluster(), "os", 1, {{"least-centers", "21"}}), UsageFault);
}

}  // namespace
}  // namespace atl::kernels
