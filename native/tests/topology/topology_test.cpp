// The native topology library against machines that hwloc can describe in a line, and against
// the golden files. The Python tests (tests/unit/topology/test_golden.py) hold the whole JSON.
#include "atoll/topology.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

namespace {

using Json = nlohmann::ordered_json;
using atl::topology::Fault;

Json synthetic(const std::string& description) {
  return Json::parse(atl::topology::discover("synthetic", description));
}

Json golden(const std::string& name) {
  return Json::parse(atl::topology::discover("xml", std::string(ATOLL_GOLDEN "/machines/") + name));
}

std::vector<int> summary(const Json& machine) {
  const Json& s = machine["summary"];
  return {s["packages"], s["numa_nodes"], s["chiplets"], s["l3"], s["cores"], s["pus"]};
}

std::set<std::string> codes(const Json& machine) {
  std::set<std::string> all;
  for (const Json& warning : machine["warnings"]) all.insert(warning["code"].get<std::string>());
  return all;
}

std::set<std::string> sources(const Json& machine) {
  std::set<std::string> all;
  for (const Json& chiplet : machine["chiplets"]) all.insert(chiplet["source"].get<std::string>());
  return all;
}

std::string refusal(const std::string& kind, const std::string& where) {
  try {
    atl::topology::discover(kind, where);
  } catch (const Fault& fault) {
    return fault.what();
  }
  return "";
}

using Counts = std::vector<int>;
using Names = std::set<std::string>;

TEST(Topology, BeginsWithSummaryThenChiplets) {
  const std::string json = atl::topology::discover("synthetic", "Package:2 L3:2 Core:2 PU:1");
  EXPECT_TRUE(json.starts_with("{\"summary\":{\"packages\":2,\"numa_nodes\":1,\"chiplets\":4,"));
  EXPECT_NE(json.find(",\"chiplets\":[{\"index\":0,\"pus\":[0,1],"), std::string::npos);
}

TEST(Topology, DualMilanOfThePaper) {
  const Json machine = synthetic(
      "Package:2 NUMANode:1(memory=512GB) L3Cache:8(size=32MB) L2Cache:8(size=512kB) Core:1 PU:1");
  EXPECT_EQ(summary(machine), (Counts{2, 2, 16, 16, 128, 128}));
  EXPECT_EQ(sources(machine), Names{"l3"});
  const Json& last = machine["chiplets"][15];
  EXPECT_EQ(last["cores"].size(), 8U);
  EXPECT_EQ(last["node"], 1);
  EXPECT_EQ(last["package"], 1);
  EXPECT_EQ(last["l3_bytes"], 32000000);
  EXPECT_EQ(codes(machine), Names{});
}

TEST(Topology, SmtMakesTwoPusACore) {
  const Json machine = synthetic("Package:1 L3:2(size=32MB) Core:4 PU:2");
  EXPECT_EQ(summary(machine), (Counts{1, 1, 2, 2, 8, 16}));
  EXPECT_TRUE(machine["smt"]);
  EXPECT_EQ(machine["chiplets"][0]["pus"].size(), 8U);
  EXPECT_EQ(machine["chiplets"][0]["cores"].size(), 4U);
}

TEST(Topology, Nps4KeepsL3AsChiplets) {
  const Json machine = synthetic("Package:2 Group:4 [numa] L3:2(size=32MB) Core:8 PU:1");
  EXPECT_EQ(summary(machine), (Counts{2, 8, 16, 16, 128, 128}));
  EXPECT_EQ(machine["chiplets"][3]["node"], 1);
}

TEST(Topology, SncMakesSubNumaChiplets) {
  const Json machine = synthetic("Package:2 L3:1(size=36MB) Group:2 [numa] Core:10 PU:2");
  EXPECT_EQ(summary(machine), (Counts{2, 4, 4, 2, 40, 80}));
  EXPECT_EQ(sources(machine), Names{"sub-numa"});
  EXPECT_EQ(machine["chiplets"][0]["l3_bytes"], 0);
}

TEST(Topology, DiesComeBeforeSubNumaNodes) {
  const Json machine = synthetic("Package:2 L3:1(size=60MB) Die:2 Group:2 [numa] Core:4 PU:1");
  EXPECT_EQ(sources(machine), Names{"die"});
  EXPECT_EQ(machine["chiplets"].size(), 4U);
  EXPECT_TRUE(machine["chiplets"][0]["node"].is_null()) << "a die over two nodes has no one node";
}

TEST(Topology, MemoryWithoutCpusHasNone) {
  // hwloc gives both nodes of a package the package's CPUs, as it does with CXL and HBM.
  const Json machine = synthetic("Package:2 [numa] [numa] L3:2(size=32MB) Core:2 PU:1");
  EXPECT_EQ(machine["nodes"].size(), 4U);
  std::size_t cpus = 0;
  for (const Json& node : machine["nodes"]) cpus += node["pus"].size();
  EXPECT_EQ(cpus, 8U) << "each CPU has one node";
  EXPECT_EQ(machine["nodes"][0]["pus"], Json({0, 1, 2, 3}));
  EXPECT_EQ(machine["nodes"][1]["pus"], Json::array());
  EXPECT_EQ(machine["nodes"][1]["package"], 0) << "what it is near to";
  EXPECT_EQ(machine["cores"][7]["node"], machine["nodes"][2]["os_index"]);
}

TEST(Topology, AnL3PerCoreIsNoChiplet) {
  const Json power8 = synthetic("Package:2 [numa(memory=64GB)] L3:10(size=8MB) Core:1 PU:8");
  EXPECT_EQ(summary(power8), (Counts{2, 2, 0, 20, 20, 160}));
  EXPECT_EQ(codes(power8), Names{"l3-per-core"});
  const Json guest = synthetic("Package:1 L3:8(size=16MB) Core:1 PU:1");
  EXPECT_EQ(summary(guest), (Counts{1, 1, 0, 8, 8, 8}));
  EXPECT_EQ(codes(guest), Names{"l3-per-cpu"});
}

TEST(Topology, AHugeL3OverFewCoresIsASlice) {
  EXPECT_EQ(codes(synthetic("Package:1 L3:1(size=260MB) Core:4 PU:1")), Names{"l3-huge-few-cpus"});
  EXPECT_EQ(codes(synthetic("Package:1 L3:1(size=96MB) Core:8 PU:2")), Names{});
}

TEST(Topology, WithoutL3) {
  const Json machine = synthetic("Package:2 [numa] Core:4 PU:2");
  EXPECT_EQ(summary(machine), (Counts{2, 2, 0, 0, 8, 16}));
  EXPECT_TRUE(machine["cores"][0]["l3"].is_null());
}

TEST(Topology, WithoutPackagesTheMachineIsTheMeasure) {
  const Json machine = synthetic("L3:4(size=16MB) Core:4 PU:1");
  EXPECT_EQ(summary(machine), (Counts{0, 1, 4, 4, 16, 16}));
  EXPECT_TRUE(machine["chiplets"][0]["package"].is_null());
}

TEST(Topology, WithoutPackagesANodeIsNotKnownToBeSmallerThanOne) {
  const Json machine = synthetic("Group:4 [numa] Core:4 PU:1");
  EXPECT_EQ(summary(machine), (Counts{0, 4, 0, 0, 16, 16}));
}

TEST(Topology, WithoutCoresEachPuCounts) {
  const Json machine = synthetic("PU:4");
  EXPECT_EQ(summary(machine), (Counts{0, 1, 0, 0, 0, 4}));
  EXPECT_EQ(machine["cores"].size(), 4U);
  EXPECT_EQ(codes(machine), Names{"cores-assumed"});
}

TEST(Topology, UnequalChipletsAndALoneCore) {
  const Json machine = golden("unequal.xml");
  EXPECT_EQ(summary(machine), (Counts{2, 2, 7, 8, 51, 51}));
  std::vector<std::size_t> sizes;
  for (const Json& chiplet : machine["chiplets"]) sizes.push_back(chiplet["cores"].size());
  EXPECT_EQ(sizes, (std::vector<std::size_t>{6, 8, 8, 7, 8, 6, 7}));
  EXPECT_EQ(codes(machine), Names{"core-outside-chiplets"});
}

TEST(Topology, AllowedSetsCutTheSummaryNotTheMachine) {
  const Json machine = golden("disallowed.xml");
  EXPECT_EQ(summary(machine), (Counts{2, 2, 4, 4, 32, 32}));
  EXPECT_EQ(machine["chiplets"].size(), 8U);
  EXPECT_EQ(machine["cores"].size(), 64U);
  EXPECT_EQ(machine["allowed"]["pus"].size(), 32U);
}

TEST(Topology, OfflineCpus) {
  EXPECT_EQ(golden("offline.xml")["offline_cpus"], Json({64, 65, 66, 67}));
}

TEST(Topology, NicsWithTheirNode) {
  const Json nics = golden("nics.xml")["nics"];
  EXPECT_EQ(nics, Json::parse(R"([
    {"name":"ens1f0","node":1,"pci":"0000:a1:00.0","rate_mbit_s":null},
    {"name":"eno1","node":null,"pci":"0000:03:00.0","rate_mbit_s":null}])"));
}

TEST(Topology, CommentsAndCarriageReturnsDoNotMatter) {
  std::ifstream file(ATOLL_GOLDEN "/machines/nps4.xml");
  std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  text.insert(text.find("<topology"), "<!-- by hand -->\r\n");
  text.insert(text.rfind("</topology>"), "<!-- end -->\r\n");
  EXPECT_EQ(summary(Json::parse(atl::topology::discover_xml("\xef\xbb\xbf" + text, "x"))),
            summary(golden("nps4.xml")));
}

TEST(Topology, CapturedFolderInEachForm) {
  const std::string folder = ATOLL_GOLDEN "/captures/two-core-vm";
  const Json whole = Json::parse(atl::topology::discover("sysfs", folder));
  EXPECT_EQ(summary(whole), (Counts{1, 1, 0, 1, 2, 2}));
  EXPECT_EQ(whole["nics"][0]["pci"], "0000:00:03.0");
  for (const char* part : {"/..", "/sys", "/sys/devices/system"}) {
    EXPECT_EQ(summary(Json::parse(atl::topology::discover("sysfs", folder + part))), summary(whole))
        << part;
  }
}

TEST(Topology, LiveHasAllowedPus) {
  const Json machine = Json::parse(atl::topology::discover("live", ""));
  EXPECT_GE(machine["allowed"]["pus"].size(), 1U);
  EXPECT_EQ(machine["origin"]["kind"], "live");
}

TEST(Topology, VariablesOfTheUserDoNotRedirectIt) {
  setenv("HWLOC_SYNTHETIC", "Package:7 PU:1", 1);
  const Json machine = Json::parse(atl::topology::discover("live", ""));
  unsetenv("HWLOC_SYNTHETIC");
  EXPECT_NE(machine["summary"]["packages"], 7);
}

TEST(Topology, RefusesInOneLine) {
  const std::string refused = ATOLL_GOLDEN "/refused/";
  EXPECT_NE(refusal("xml", refused + "hwloc3.xml").find("lstopo --export-xml-flags v2 OUT.xml"),
            std::string::npos);
  EXPECT_NE(refusal("xml", refused + "truncated.xml").find("truncated"), std::string::npos);
  EXPECT_NE(refusal("xml", refused + "empty.xml").find("is empty"), std::string::npos);
  EXPECT_NE(refusal("xml", refused + "text.xml").find("not hwloc XML"), std::string::npos);
  EXPECT_NE(refusal("xml", refused + "package-overlap.xml").find("PU 15 is in two packages"),
            std::string::npos);
  EXPECT_NE(refusal("xml", refused + "no-pu.xml").find("has no PU"), std::string::npos);
  EXPECT_NE(refusal("xml", "/nonexistent.xml").find("No such file"), std::string::npos);
  EXPECT_NE(refusal("synthetic", "gibberish").find("not an hwloc synthetic"), std::string::npos);
  EXPECT_NE(refusal("sysfs", ATOLL_GOLDEN "/machines").find("hwloc-gather-topology"),
            std::string::npos);
  EXPECT_NE(refusal("nonsense", "").find("unknown kind"), std::string::npos);
}

TEST(Topology, AnEndlessInputIsCutShort) {
  EXPECT_NE(refusal("synthetic", "Core:100000000 PU:1").find("over 65536 PUs"), std::string::npos);
  EXPECT_NE(refusal("synthetic", "4294967297 4294967297").find("over 65536 PUs"),
            std::string::npos);
}

TEST(Topology, CEntryPoint) {
  char* text = nullptr;
  ASSERT_EQ(atoll_topology_discover("synthetic", "Package:1 Core:2 PU:1", &text), 0);
  EXPECT_EQ(Json::parse(text)["summary"]["cores"], 2);
  std::free(text);
  ASSERT_EQ(atoll_topology_discover("synthetic", "x", &text), 1);
  EXPECT_TRUE(std::string(text).starts_with("synthetic topology 'x'"));
  std::free(text);
}

}  // namespace
