// Places from machine files, from synthetic descriptions and from this machine; parts of them.
#include "atoll/runtime/places.hpp"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "atoll/topology.hpp"
#include "places/build.hpp"

namespace atl {
namespace {

using Json = nlohmann::json;

Places places_of_synthetic_machine(const std::string& hwloc_words) {
  return places_from_machine(topology::discover("synthetic", hwloc_words));
}

Places golden(const std::string& name) {
  return places_from_machine(
      topology::discover("xml", std::string(ATOLL_GOLDEN) + "/machines/" + name));
}

std::vector<int> chiplet_sizes(const Places& places) {
  std::vector<int> sizes;
  for (int chiplet = 0; chiplet < places.chiplets(); ++chiplet) {
    sizes.push_back(static_cast<int>(places.cores_of_chiplet(chiplet).size()));
  }
  return sizes;
}

// The promise of places.hpp that these places break; empty if they keep all.
std::string broken_promise(const Places& places) {
  std::set<int> cpus;
  std::map<int, const Core*> core_of_chiplet;
  const Core* last = nullptr;
  for (const Core& core : places.cores) {
    if (core.cpus.empty() || !std::ranges::is_sorted(core.cpus)) return "CPUs of a core";
    for (const int cpu : core.cpus) {
      if (!cpus.insert(cpu).second) return "CPU " + std::to_string(cpu) + " is in two cores";
    }
    const Core& other = *core_of_chiplet.emplace(core.chiplet, &core).first->second;
    if (other.node != core.node || other.package != core.package) return "chiplet over nodes";
    if (last != nullptr && std::tuple(last->package, last->node, last->chiplet) >
                               std::tuple(core.package, core.node, core.chiplet)) {
      return "order of cores";
    }
    last = &core;
  }
  const int chiplets = places.chiplets();
  if (static_cast<int>(core_of_chiplet.size()) != chiplets) return "number of chiplets";
  if (core_of_chiplet.rbegin()->first != chiplets - 1) return "gap in the chiplets";
  for (int from = 0; from < chiplets; ++from) {
    for (int to = 0; to < chiplets; ++to) {
      const int level =
          places.chiplet_levels.at(static_cast<std::size_t>(from)).at(static_cast<std::size_t>(to));
      const int back =
          places.chiplet_levels.at(static_cast<std::size_t>(to)).at(static_cast<std::size_t>(from));
      if (level != back || (level == 0) != (from == to)) return "levels";
    }
  }
  return "";
}

// The CPUs of the JSON's cores as far as they are allowed.
std::set<int> allowed_cpus(const Json& machine) {
  const std::set<int> allowed = machine.at("allowed").at("pus").get<std::set<int>>();
  std::set<int> found;
  for (const Json& core : machine.at("cores")) {
    for (const int cpu : core.at("pus").get<std::vector<int>>()) {
      if (allowed.contains(cpu)) found.insert(cpu);
    }
  }
  return found;
}

TEST(PlacesFromMachine, EveryRecordedMachineHasEachAllowedCpuOnce) {
  int machines = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(ATOLL_GOLDEN) + "/machines")) {
    SCOPED_TRACE(entry.path().filename().string());
    const std::string json = topology::discover("xml", entry.path());
    const Places places = places_from_machine(json);
    EXPECT_EQ(broken_promise(places), "");
    std::set<int> cpus;
    for (const Core& core : places.cores) cpus.insert(core.cpus.begin(), core.cpus.end());
    EXPECT_EQ(cpus, allowed_cpus(Json::parse(json)));
    ++machines;
  }
  EXPECT_GE(machines, 15);
}

TEST(PlacesFromMachine, TakesChipletsNodesAndPackages) {
  const Places places = places_of_synthetic_machine("pack:2 numa:1 l3:4 l2:2 l1:1 core:1 pu:2");
  EXPECT_EQ(places.cores.size(), 16U);
  EXPECT_EQ(places.chiplets(), 8);
  EXPECT_EQ(places.nodes(), (std::vector<int>{0, 1}));
  EXPECT_EQ(places.cores[9], (Core{{18, 19}, 4, 1, 1}));
  EXPECT_EQ(places.cores_of_chiplet(4), (std::vector<int>{8, 9}));
  EXPECT_EQ(places.cores_of_node(1), (std::vector<int>{8, 9, 10, 11, 12, 13, 14, 15}));
  EXPECT_EQ(places.chiplet_levels[0], (std::vector<int>{0, 1, 1, 1, 3, 3, 3, 3}));
}

TEST(PlacesFromMachine, LevelsTellNodesOfAPackage) {
  const Places places =
      places_of_synthetic_machine("pack:2 [numa] group:2 [numa] l3:2 core:2 pu:1");
  ASSERT_EQ(places.chiplets(), 8);
  EXPECT_EQ(places.chiplet_levels[0], (std::vector<int>{0, 1, 2, 2, 3, 3, 3, 3}));
}

TEST(PlacesFromMachine, WithoutChipletsANodeIsOne) {
  const Places places = places_of_synthetic_machine("pack:2 numa:1 core:4 pu:1");
  EXPECT_EQ(chiplet_sizes(places), (std::vector<int>{4, 4}));
  EXPECT_EQ(places.chiplet_levels[0], (std::vector<int>{0, 3}));
}

Json small_machine() {
  return Json::parse(topology::discover("synthetic", "pack:2 numa:1 core:4 pu:1"));
}

TEST(PlacesFromMachine, WithoutNodesAPackageIsOne) {
  Json machine = small_machine();
  machine["nodes"] = Json::array();
  for (Json& core : machine["cores"]) core["node"] = nullptr;
  const Places places = places_from_machine(machine.dump());
  EXPECT_EQ(chiplet_sizes(places), (std::vector<int>{4, 4}));
  EXPECT_EQ(places.nodes(), (std::vector<int>{0}));
  EXPECT_EQ(places.cores.back().package, 1);
}

TEST(PlacesFromMachine, CoresOutsideChipletsMakeOnePerNode) {
  Json machine = small_machine();
  machine["chiplets"] = Json::array({{{"pus", {0, 1}}}, {{"pus", {5, 6}}}});
  const Places places = places_from_machine(machine.dump());
  EXPECT_EQ(chiplet_sizes(places), (std::vector<int>{2, 2, 2, 2}));
  EXPECT_EQ(broken_promise(places), "");
  // By first core: in node 1 the rest (CPU 4) comes before the named chiplet (CPU 5).
  EXPECT_EQ(places.cores[4].cpus, (std::vector<int>{4}));
  EXPECT_EQ(places.cores[5].cpus, (std::vector<int>{7}));
}

TEST(PlacesFromMachine, AChipletOverTwoNodesCountsAsTwo) {
  Json machine = small_machine();
  machine["chiplets"] = Json::array({{{"pus", {2, 3, 4, 5}}}});
  const Places places = places_from_machine(machine.dump());
  EXPECT_EQ(chiplet_sizes(places), (std::vector<int>{2, 2, 2, 2}));
  EXPECT_EQ(broken_promise(places), "");
}

TEST(PlacesFromMachine, ACoreOfSeveralNodesBelongsToTheFirstWithMemory) {
  Json machine = small_machine();
  machine["nodes"] = Json::array({{{"os_index", 0}, {"memory_bytes", 0}, {"pus", {0, 1, 2, 3}}},
                                  {{"os_index", 5}, {"memory_bytes", 7}, {"pus", {0, 1, 2, 3}}},
                                  {{"os_index", 4}, {"memory_bytes", 7}, {"pus", {0, 1, 2, 3}}}});
  for (Json& core : machine["cores"]) core["node"] = nullptr;
  const Places places = places_from_machine(machine.dump());
  EXPECT_EQ(places.nodes(), (std::vector<int>{4}));
}

TEST(PlacesFromMachine, OnlyAllowedCpusAreUsed) {
  Json machine = Json::parse(topology::discover("synthetic", "pack:2 numa:1 l3:2 core:2 pu:2"));
  machine["allowed"]["pus"] = {1, 12, 13, 14};
  const Places places = places_from_machine(machine.dump());
  EXPECT_EQ(places.cores,
            (std::vector<Core>{{{1}, 0, 0, 0}, {{12, 13}, 1, 1, 1}, {{14}, 1, 1, 1}}));
}

TEST(PlacesFromMachine, UnequalChipletsStayUnequal) {
  const Places places = golden("unequal.xml");
  std::vector<int> sizes = chiplet_sizes(places);
  EXPECT_NE(std::ranges::min(sizes), std::ranges::max(sizes));
}

std::string fault_of(const std::string& machine_json) {
  try {
    places_from_machine(machine_json);
  } catch (const RuntimeFault& fault) {
    return fault.what();
  }
  return "";
}

TEST(PlacesFromMachine, SaysWhatIsWrong) {
  const auto changed = [](const char* pointer, const Json& value) {
    Json machine = small_machine();
    machine[Json::json_pointer(pointer)] = value;
    return fault_of(machine.dump());
  };
  const auto has = [](const std::string& text, const char* words) {
    return text.find(words) != std::string::npos && text.find('\n') == std::string::npos;
  };
  EXPECT_TRUE(has(fault_of("{"), "not JSON; write it with 'atoll topo --json'"));
  EXPECT_TRUE(has(fault_of("[]"), "another format"));
  EXPECT_TRUE(has(fault_of("{\"format\":\"atoll/plan\"}"), "another format"));
  EXPECT_TRUE(has(changed("/version", 2), "version 1"));
  EXPECT_TRUE(has(changed("/allowed/pus", Json::array()), "no core is left"));
  EXPECT_TRUE(has(changed("/cores/0/pus/0", 1), "CPU 1 is in two cores"));
  EXPECT_TRUE(has(changed("/cores/0/pus/0", -1), "'pus' is not a number from 0"));
  EXPECT_TRUE(has(changed("/cores/0/pus/0", 0.5), "'pus' is not a number from 0"));
  EXPECT_TRUE(has(changed("/cores/0/pus/0", 18446744073709551615U), "'pus' is not a number"));
  EXPECT_TRUE(has(changed("/cores/0/package", "x"), "'package' is not a number"));
  EXPECT_TRUE(has(changed("/cores", Json::object()), "'cores' is not a list"));
  EXPECT_TRUE(has(changed("/chiplets", Json::parse("[{\"pus\":[0]},{\"pus\":[0]}]")),
                  "CPU 0 is in two chiplets"));
  Json threads = Json::parse(topology::discover("synthetic", "pack:1 numa:1 core:4 pu:2"));
  threads["chiplets"] = Json::parse("[{\"pus\":[0,1,2]}]");
  EXPECT_TRUE(has(fault_of(threads.dump()), "only in part in a chiplet"));
}

TEST(BuildPlaces, TooMuchIsRefused) {
  const auto fault = [](std::size_t cores, bool chiplet_each) -> std::string {
    std::vector<runtime::RawCore> raw(cores, runtime::RawCore{{0}, 0, 0, 0});
    for (std::size_t core = 0; chiplet_each && core < cores; ++core) {
      raw[core].chiplet = static_cast<int>(core);
    }
    try {
      runtime::build_places(raw);
    } catch (const RuntimeFault& found) {
      return found.what();
    }
    return "";
  };
  EXPECT_EQ(fault(8192, false), "");
  EXPECT_NE(fault(8193, false).find("at most 8192"), std::string::npos);
  EXPECT_EQ(fault(1024, true), "");
  EXPECT_NE(fault(1025, true).find("at most 1024"), std::string::npos);
}

TEST(PlacesFromMachine, DeepNestingIsAFaultNotAStackOverflow) {
  const std::string deep(2'000'000, '[');
  EXPECT_NE(fault_of(deep).find("too deeply"), std::string::npos);
  EXPECT_NE(fault_of("{\"format\":" + deep).find("too deeply"), std::string::npos);
}

TEST(SyntheticPlaces, CountsInsideTheOneAbove) {
  const Places places = synthetic_places("package:2 node:2 chiplet:3 core:4 pu:2", {});
  EXPECT_EQ(places.cores.size(), 48U);
  EXPECT_EQ(places.chiplets(), 12);
  EXPECT_EQ(places.nodes(), (std::vector<int>{0, 1, 2, 3}));
  EXPECT_EQ(places.cores[25], (Core{{50, 51}, 6, 2, 1}));
  EXPECT_EQ(places.chiplet_levels[0], (std::vector<int>{0, 1, 1, 2, 2, 2, 3, 3, 3, 3, 3, 3}));
  EXPECT_EQ(broken_promise(places), "");
}

TEST(SyntheticPlaces, AListGivesEachItsOwn) {
  const Places places = synthetic_places(" node:2  chiplet:2,3 core:8,6,1,4,2 ", {});
  EXPECT_EQ(chiplet_sizes(places), (std::vector<int>{8, 6, 1, 4, 2}));
  EXPECT_EQ(places.cores_of_node(0).size(), 14U);
}

TEST(SyntheticPlaces, RealCpusAreTakenInTurn) {
  const Places places = synthetic_places("chiplet:2 core:2", {7, 3, 9});
  EXPECT_EQ(places.cores,
            (std::vector<Core>{{{7}, 0, 0, 0}, {{3}, 0, 0, 0}, {{9}, 1, 0, 0}, {{7}, 1, 0, 0}}));
  EXPECT_EQ(synthetic_places("core:2 pu:2", {5}).cores[1].cpus, (std::vector<int>{5}));
  EXPECT_EQ(synthetic_places("core:1 pu:2", {5, 2}).cores[0].cpus, (std::vector<int>{2, 5}));
}

TEST(SyntheticPlaces, NamesTheColumnOfAFault) {
  const auto fault = [](const char* text) -> std::string {
    try {
      synthetic_places(text, {});
    } catch (const RuntimeFault& found) {
      const std::string what = found.what();
      const std::string start = "synthetic places: column ";
      EXPECT_TRUE(what.starts_with(start)) << what;
      return what.substr(start.size(), what.find(':', start.size()) - start.size());
    }
    return "none";
  };
  EXPECT_EQ(fault(""), "1");
  EXPECT_EQ(fault("chiplet:2"), "10");        // core is missing
  EXPECT_EQ(fault("chiplet:2 l3:2"), "11");   // no such level
  EXPECT_EQ(fault("core:2 chiplet:2"), "8");  // order
  EXPECT_EQ(fault("core:2 core:2"), "8");     // twice
  EXPECT_EQ(fault("core"), "5");              // ':' is missing
  EXPECT_EQ(fault("core:"), "6");
  EXPECT_EQ(fault("core:0"), "6");
  EXPECT_EQ(fault("core:-1"), "6");
  EXPECT_EQ(fault("core:2,"), "8");
  EXPECT_EQ(fault("core:2;"), "7");
  EXPECT_EQ(fault("core:99999999999"), "6");
  EXPECT_EQ(fault("core:1 pu:9"), "11");
  EXPECT_EQ(fault("chiplet:3 core:1,2"), "16");    // 2 counts for 3 chiplets
  EXPECT_EQ(fault("package:100 core:100"), "18");  // too many
  EXPECT_EQ(fault("Core:2"), "1");
  EXPECT_THROW(synthetic_places("core:1", {-1}), RuntimeFault);
  EXPECT_THROW(synthetic_places("chiplet:1025 core:1", {}), RuntimeFault);
}

TEST(RestrictPlaces, RenumbersWhatIsLeftAndKeepsLevels) {
  const Places whole = synthetic_places("package:2 node:2 chiplet:2 core:2 pu:2", {});
  const Places part = restrict_to_cores(whole, std::vector<int>{15, 2, 3, 2, 8});
  EXPECT_EQ(part.cores,
            (std::vector<Core>{
                {{4, 5}, 0, 0, 0}, {{6, 7}, 0, 0, 0}, {{16, 17}, 1, 2, 1}, {{30, 31}, 2, 3, 1}}));
  EXPECT_EQ(part.chiplet_levels, (std::vector<std::vector<int>>{{0, 3, 3}, {3, 0, 2}, {3, 2, 0}}));
  EXPECT_EQ(broken_promise(part), "");
  EXPECT_EQ(restrict_to_cpus(whole, std::vector<int>{5, 99, 16, 17}).cores,
            (std::vector<Core>{{{5}, 0, 0, 0}, {{16, 17}, 1, 2, 1}}));
}

TEST(RestrictPlaces, RefusesNothingAndWhatIsNotThere) {
  const Places whole = synthetic_places("core:4", {});
  EXPECT_THROW(restrict_to_cores(whole, {}), RuntimeFault);
  EXPECT_THROW(restrict_to_cores(whole, std::vector<int>{4}), RuntimeFault);
  EXPECT_THROW(restrict_to_cores(whole, std::vector<int>{-1}), RuntimeFault);
  EXPECT_THROW(restrict_to_cpus(whole, std::vector<int>{4}), RuntimeFault);
}

TEST(Places, WhatIsNotThereIsAFault) {
  const Places places = synthetic_places("chiplet:2 core:1", {});
  EXPECT_THROW(places.cores_of_chiplet(2), RuntimeFault);
  EXPECT_THROW(places.cores_of_chiplet(-1), RuntimeFault);
  EXPECT_THROW(places.cores_of_node(1), RuntimeFault);
}

TEST(PlacesHere, AreWhatTheCallingThreadMayRunOn) {
  const auto cpus_here = [] {
    std::set<int> cpus;
    for (const Core& core : places_here().cores) cpus.insert(core.cpus.begin(), core.cpus.end());
    return cpus;
  };
  cpu_set_t mask;
  ASSERT_EQ(sched_getaffinity(0, sizeof(mask), &mask), 0);
  const std::set<int> all = cpus_here();
  EXPECT_EQ(static_cast<int>(all.size()), CPU_COUNT(&mask));
  for (const int cpu : all) EXPECT_TRUE(CPU_ISSET(static_cast<std::size_t>(cpu), &mask)) << cpu;
  std::thread([&] {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<std::size_t>(*all.rbegin()), &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
    EXPECT_EQ(cpus_here(), std::set<int>{*all.rbegin()});
  }).join();
}

}  // namespace
}  // namespace atl
