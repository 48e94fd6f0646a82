// Levels between chiplets from a profile. Atoll's own schema wrote the file in seeds/, from made-up
// latencies: 2 packages x 2 quarters x 2 chiplets x 4 cores.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "atoll/runtime/places.hpp"
#include "atoll/runtime/victims.hpp"

namespace atl {
namespace {

using Json = nlohmann::json;

Json profile() {
  std::ifstream file(std::string(ATOLL_SEEDS) + "/profile.json");
  return Json::parse(file);
}

Places measured_machine() { return synthetic_places("package:2 chiplet:4 core:4", {}); }

using Levels = std::vector<std::vector<int>>;

// A profile with these groups, the nearest level first.
std::string with_levels(const Json& groups_of_levels) {
  Json made = profile();
  made["inference"]["levels"] = Json::array();
  for (const Json& groups : groups_of_levels) {
    made["inference"]["levels"].push_back({{"median", 1.0}, {"groups", groups}});
  }
  return made.dump();
}

TEST(PlacesWithProfile, TakesTheMeasuredLevels) {
  const Places places = places_with_profile(measured_machine(), profile().dump());
  EXPECT_EQ(places.chiplet_levels[0], (std::vector<int>{0, 1, 2, 2, 3, 3, 3, 3}));
  EXPECT_EQ(places.chiplet_levels[6], (std::vector<int>{3, 3, 3, 3, 2, 2, 0, 1}));
  EXPECT_EQ(places.cores, measured_machine().cores);
  EXPECT_EQ(steal_distance(places, 0, 1), Distance::near);
  EXPECT_EQ(steal_distance(places, 0, 2), Distance::node);
}

TEST(PlacesWithProfile, TakesTheLatenciesOfLevels) {
  const std::vector<double> measured{0, 91.9, 139.8, 196.4};
  const Places places = places_with_profile(measured_machine(), profile().dump());
  EXPECT_EQ(places.level_ns, measured);
  EXPECT_EQ(restrict_to_cpus(places, std::vector<int>{1, 31}).level_ns, measured);
  Json made = profile();
  made["inference"]["source"] = "bandwidth";
  EXPECT_EQ(places_with_profile(measured_machine(), made.dump()).level_ns, std::vector<double>{})
      << "these are GB/s";
}

TEST(PlacesWithProfile, ALevelThatNoPairHasMeasuredHasNoLatency) {
  const Places places = synthetic_places("package:2 chiplet:2,1 core:1", {});
  const Places made = places_with_profile(places, with_levels({{{0, 1}}}));
  EXPECT_EQ(made.chiplet_levels, (Levels{{0, 1, 2}, {1, 0, 2}, {2, 2, 0}}));
  EXPECT_EQ(made.level_ns, (std::vector<double>{0, 1, 0}));
}

TEST(PlacesWithProfile, TakenTwiceIsTakenOnce) {
  const Places once = places_with_profile(measured_machine(), profile().dump());
  EXPECT_EQ(places_with_profile(once, profile().dump()), once);
}

TEST(PlacesWithProfile, ThePartOfAMachineKeepsItsLevels) {
  const Places part = restrict_to_cpus(measured_machine(), std::vector<int>{1, 5, 9, 31});
  EXPECT_EQ(places_with_profile(part, profile().dump()).chiplet_levels,
            (Levels{{0, 1, 2, 3}, {1, 0, 2, 3}, {2, 2, 0, 3}, {3, 3, 3, 0}}));
}

TEST(PlacesWithProfile, TheOrderOfTheListCountsNotTheGroupsSize) {
  // As measured on a real machine: the second package is farther from itself than from the first.
  const Places places = synthetic_places("package:2 chiplet:2 core:1", {});
  const std::string json = with_levels({{{0, 1}}, {{0, 1, 2, 3}}, {{2, 3}}});
  EXPECT_EQ(places_with_profile(places, json).chiplet_levels,
            (Levels{{0, 1, 2, 2}, {1, 0, 2, 2}, {2, 2, 0, 3}, {2, 2, 3, 0}}));
}

TEST(PlacesWithProfile, APairThatWasNotMeasuredIsAsFarAsTheFarthestOfItsKind) {
  const Places places = synthetic_places("package:2 chiplet:3,1 core:2", {});
  // CPUs 0, 2, 4 (one of each chiplet): 0 and 2 are nearest. The other package was left out.
  const std::string json = with_levels({{{0, 2}}, {{0, 2, 4}}});
  EXPECT_EQ(places_with_profile(places, json).chiplet_levels,
            (Levels{{0, 1, 2, 3}, {1, 0, 2, 3}, {2, 2, 0, 3}, {3, 3, 3, 0}}));
}

TEST(PlacesWithProfile, OneChipletNeedsNoLevels) {
  const Places places = synthetic_places("core:4", {});
  EXPECT_EQ(places_with_profile(places, with_levels(Json::array())), places);
}

std::string profile_fault(const std::string& json) {
  try {
    places_with_profile(measured_machine(), json);
  } catch (const RuntimeFault& fault) {
    return fault.what();
  }
  return "";
}

TEST(PlacesWithProfile, SaysWhatIsWrong) {
  const auto has = [](const std::string& text, const char* words) {
    return text.find(words) != std::string::npos && text.find('\n') == std::string::npos;
  };
  Json made = profile();
  made["emulated"] = true;
  EXPECT_TRUE(has(profile_fault(made.dump()), "emulated"));
  made = profile();
  made["inference"] = nullptr;
  EXPECT_TRUE(has(profile_fault(made.dump()), "no levels"));
  EXPECT_TRUE(has(profile_fault(with_levels(Json::array())), "no level for any two chiplets"));
  EXPECT_TRUE(has(profile_fault(with_levels({{{1000, 1001}}})), "no level for any two chiplets"));
  EXPECT_TRUE(has(profile_fault(with_levels({{{-1, 1}}})), "'groups' is not a number"));
  EXPECT_TRUE(has(profile_fault(with_levels({{7}})), "'groups' is not a list"));
  made = profile();
  made["inference"]["levels"][0]["median"] = -1;
  EXPECT_TRUE(has(profile_fault(made.dump()), "'median' is not a number"));
  EXPECT_TRUE(has(profile_fault("{\"format\":\"atoll/machine\"}"), "another format"));
}

}  // namespace
}  // namespace atl
