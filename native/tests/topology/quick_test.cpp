// The quick reading (quick.hpp) against hwloc: both read a captured sysfs, which is written here
// from hand-made machines, and must find the same packages, nodes, dies, L3 domains and chiplets.
#include "quick.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "atoll/topology.hpp"
#include "pus.hpp"

namespace atl::topology {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

class QuickOf : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "atoll-quick-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    root = name;
  }
  void TearDown() override { fs::remove_all(root); }

  void write(const std::string& path, const std::string& text) const {
    const fs::path file = root / "sys/devices/system" / path;
    fs::create_directories(file.parent_path());
    std::ofstream(file) << text << '\n';
  }

  // A set of CPUs as the kernel writes it, in words of 32 bits.
  static std::string mask_of(const Pus& pus) {
    std::string text;
    for (int word = pus.back() / 32; word >= 0; --word) {
      unsigned bits = 0;
      for (const int pu : pus) bits |= pu / 32 == word ? 1U << (pu % 32) : 0U;
      std::string digits(9, '\0');
      std::snprintf(digits.data(), digits.size(), "%08x", bits);
      text += (text.empty() ? "" : ",") + digits.substr(0, 8);
    }
    return text;
  }

  // The sysfs of a machine whose nodes all have CPUs.
  void write_machine(const Json& machine) const {
    Pus all;
    std::map<int, std::string> folder;
    for (const Json& core : machine["cores"]) {
      for (const int pu : core["pus"]) {
        all.push_back(pu);
        folder[pu] = "cpu/cpu" + std::to_string(pu) + "/";
        write(folder[pu] + "topology/core_id", core["os_index"].dump());
        write(folder[pu] + "topology/core_cpus", mask_of(core["pus"]));
      }
    }
    std::sort(all.begin(), all.end());
    write("cpu/online", to_list(all));
    for (const Json& package : machine["packages"]) {
      for (const int pu : package["pus"]) {
        write(folder[pu] + "topology/physical_package_id", package["os_index"].dump());
        write(folder[pu] + "topology/package_cpus", mask_of(package["pus"]));
      }
    }
    for (const Json& die : machine["dies"]) {
      for (const int pu : die["pus"]) {
        write(folder[pu] + "topology/die_cpus", mask_of(die["pus"]));
      }
    }
    for (const Json& l3 : machine["l3"]) {
      for (const int pu : l3["pus"]) {
        const std::string cache = folder[pu] + "cache/index3/";
        write(cache + "level", "3");
        write(cache + "type", "Unified");
        write(cache + "size", std::to_string(l3["size_bytes"].get<std::uint64_t>() / 1024) + "K");
        write(cache + "shared_cpu_map", mask_of(l3["pus"]));
      }
    }
    Pus numbers;
    for (const Json& node : machine["nodes"]) numbers.push_back(node["os_index"]);
    std::sort(numbers.begin(), numbers.end());
    write("node/online", to_list(numbers));
    for (const Json& node : machine["nodes"]) {
      const std::string own = "node/node" + node["os_index"].dump() + "/";
      write(own + "cpumap", mask_of(node["pus"]));
      std::string row;
      for (const Json& other : machine["nodes"]) {
        row += (row.empty() ? "" : " ") + distance(machine, node["os_index"], other["os_index"]);
      }
      write(own + "distance", row);
    }
  }

  // 10 within a node, 12 within a package, 32 between packages, unless the machine has others.
  static std::string distance(const Json& machine, int a, int b) {
    if (a == b) return "10";
    Json package_of;
    for (const Json& node : machine["nodes"]) {
      package_of[std::to_string(node["os_index"].get<int>())] = node["package"];
    }
    return package_of[std::to_string(a)] == package_of[std::to_string(b)] ? "12" : "32";
  }

  [[nodiscard]] std::optional<Machine> quick() const { return read_quickly(root.string()); }

  [[nodiscard]] Json hwloc() const { return Json::parse(discover("sysfs", root.string())); }

  fs::path root;
};

std::vector<Pus> sets_of(const Json& objects) {
  std::vector<Pus> sets;
  for (const Json& object : objects) sets.push_back(object["pus"]);
  return sets;
}

template <typename Objects>
std::vector<Pus> sets_in(const Objects& objects) {
  std::vector<Pus> sets;
  for (const auto& object : objects) sets.push_back(object.pus);
  return sets;
}

class Quick : public QuickOf, public ::testing::WithParamInterface<const char*> {
 protected:
  static Json described(const std::string& name) {
    const bool file = name.ends_with(".xml");
    return Json::parse(file ? discover("xml", std::string(ATOLL_GOLDEN "/machines/") + name)
                            : discover("synthetic", name));
  }
};

TEST_P(Quick, FindWhatHwlocFinds) {
  write_machine(described(GetParam()));
  const auto found = quick();
  ASSERT_TRUE(found.has_value());
  const Json expected = hwloc();
  EXPECT_EQ(sets_in(found->packages), sets_of(expected["packages"]));
  EXPECT_EQ(sets_in(found->nodes), sets_of(expected["nodes"]));
  EXPECT_EQ(sets_in(found->dies), sets_of(expected["dies"]));
  EXPECT_EQ(sets_in(found->l3), sets_of(expected["l3"]));
  EXPECT_EQ(sets_in(found->chiplets), sets_of(expected["chiplets"]));
  EXPECT_EQ(found->cores.size(), expected["cores"].size());
}

INSTANTIATE_TEST_SUITE_P(
    Machines, Quick,
    ::testing::Values("dual-milan.xml", "nps4.xml", "dies.xml", "l3-as-numa.xml", "nics.xml",
                      "smt-siblings-far.xml", "snc2-distances.xml", "unequal.xml",
                      "mixed-packages.xml", "vm-l3-per-cpu.xml",
                      "Package:2 L3:1 Group:2 [numa] Core:4 PU:2",
                      "Package:2 Group:2 [numa] L3:2 Core:2 PU:2(indexes=0,16,1,17,2,18,3,19,4,20,"
                      "5,21,6,22,7,23,8,24,9,25,10,26,11,27,12,28,13,29,14,30,15,31)",
                      "Package:4 [numa] L3:2 Core:2 PU:1(indexes=package:core)"));

TEST_F(QuickOf, WhatOnlyHwlocKnowsIsLeftToIt) {
  const Json regular =
      Json::parse(discover("synthetic", "Package:2 Group:2 [numa] L3:2 Core:2 PU:1"));
  const auto irregular = [&](const std::function<void()>& change) {
    fs::remove_all(root / "sys");
    write_machine(regular);
    EXPECT_TRUE(quick().has_value());
    change();
    return !quick().has_value();
  };
  EXPECT_TRUE(irregular([&] { fs::remove_all(root / "sys/devices/system/cpu/cpu2/cache"); }))
      << "a CPU without L3";
  EXPECT_TRUE(irregular([&] { write("node/node3/cpumap", "0"); })) << "memory alone";
  EXPECT_TRUE(irregular([&] { fs::remove_all(root / "sys/devices/system/node"); }));
  EXPECT_TRUE(irregular([&] { write("node/node0/distance", "10 32 12 32"); }));
  EXPECT_TRUE(irregular([&] { write("node/node1/access0/initiators/node0/x", ""); }));
  EXPECT_TRUE(irregular([&] { write("cpu/cpu2/cache/index3/shared_cpu_map", "1c"); })) << "overlap";
  EXPECT_TRUE(irregular([&] { write("cpu/cpu0/topology/cluster_cpus", "f"); }))
      << "a cluster around two L3s";
  EXPECT_TRUE(irregular([&] { write("cpu/online", "x"); }));
}

TEST_F(QuickOf, OfflineCpusAreNotThere) {
  write_machine(Json::parse(discover("synthetic", "Package:1 [numa] L3:2 Core:4 PU:1")));
  write("cpu/online", "0-4,6-7");
  const auto found = quick();
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(sets_in(found->chiplets), sets_of(hwloc()["chiplets"]));
}

}  // namespace
}  // namespace atl::topology
