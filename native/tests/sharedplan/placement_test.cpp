// Placement files: what fits, and what is refused.
#include "placement.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "flags.hpp"

namespace atl::sharedplan {
namespace {

const Places kHere = synthetic_places("node:2 core:2", {});

nlohmann::json file() {
  nlohmann::json made = {{"format", "atoll/placement"},
                         {"version", 1},
                         {"deployment", "packed"},
                         {"cores", {{{"cpu", 1}}, {{"cpu", 2}}}}};
  for (std::size_t at = 0; at < plan().size(); ++at) {
    made["units"].push_back({{"operators", {plan()[at].id}}, {"cpu", 1 + at % 2}});
  }
  return made;
}

std::string fault_of(const nlohmann::json& made) {
  try {
    (void)parse_placement(made.dump(), plan(), kHere);
  } catch (const kernels::UsageFault& fault) {
    return fault.what();
  }
  return "";
}

TEST(Placement, GivesEachOperatorItsCpu) {
  const Placement found = parse_placement(file().dump(), plan(), kHere);
  EXPECT_EQ(found.deployment, "packed");
  EXPECT_EQ(found.cpus, (std::vector<int>{1, 2}));
  ASSERT_EQ(found.cpu_of.size(), plan().size());
  for (std::size_t at = 0; at < plan().size(); ++at) {
    EXPECT_EQ(found.cpu_of[at], static_cast<int>(1 + at % 2));
  }
}

TEST(Placement, WithoutUnitsHasOnlyCpus) {
  nlohmann::json made = file();
  made["units"] = nlohmann::json::array();
  const Placement found = parse_placement(made.dump(), plan(), kHere);
  EXPECT_EQ(found.cpus, (std::vector<int>{1, 2}));
  EXPECT_TRUE(found.cpu_of.empty());
}

TEST(Placement, ThatDoesNotFitIsRefused) {
  nlohmann::json made = file();
  made["units"][0]["operators"] = {"scan_itm"};
  EXPECT_NE(fault_of(made).find("scan_itm"), std::string::npos);
  made["units"].erase(0);
  EXPECT_NE(fault_of(made).find("no core for scan_item"), std::string::npos);
  made = file();
  made["units"][5]["operators"].push_back("scan_item");
  EXPECT_NE(fault_of(made).find("scan_item twice"), std::string::npos);
  made = file();
  made["units"][0]["replicas"] = 2;
  EXPECT_NE(fault_of(made).find("scan_item"), std::string::npos);
  made = file();
  made["units"][0]["cpu"] = 4;
  EXPECT_NE(fault_of(made).find("CPU 4"), std::string::npos);
  made = file();
  made["cores"][0]["cpu"] = -1;
  EXPECT_NE(fault_of(made).find("CPU -1"), std::string::npos);
}

TEST(Placement, OnTwoCpusOfOneCoreIsRefused) {
  const Places threaded = synthetic_places("node:1 core:2 pu:2", {});
  const std::vector<int>& pair = threaded.cores[0].cpus;
  ASSERT_EQ(pair.size(), 2U);
  nlohmann::json made = file();
  const auto put_on = [&](int first, int second) {
    made["cores"] = {{{"cpu", first}}, {{"cpu", second}}};
    for (std::size_t at = 0; at < plan().size(); ++at) {
      made["units"][at]["cpu"] = at % 2 == 0 ? first : second;
    }
    return parse_placement(made.dump(), plan(), threaded).cpus;
  };
  EXPECT_THROW(put_on(pair[0], pair[1]), kernels::UsageFault);
  const int next = threaded.cores[1].cpus[1];
  EXPECT_EQ(put_on(pair[1], next), (std::vector<int>{pair[1], next}));
}

TEST(Placement, ThatIsNoneIsRefusedInOneLine) {
  nlohmann::json other = file();
  other["version"] = 2;
  nlohmann::json typed = file();
  typed["units"][0]["cpu"] = "one";
  nlohmann::json without = file();
  without.erase("units");
  for (const std::string& text :
       {std::string(), std::string("{"), std::string("[]"), std::string("\xff"), other.dump(),
        typed.dump(), without.dump()}) {
    try {
      (void)parse_placement(text, plan(), kHere);
      ADD_FAILURE() << text;
    } catch (const kernels::UsageFault& fault) {
      EXPECT_EQ(std::string(fault.what()).find('\n'), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace atl::sharedplan
