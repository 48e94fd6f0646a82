// Places on a small machine that is written down here: unequal chiplets, a node without CPUs,
// and everything that hwloc has no word for. The syntax as such is in exec_places_hwloc_test.

#include "places.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "fault.hpp"

namespace atl::exec {
namespace {

CpuSet range(std::size_t first, std::size_t last) {
  CpuSet set;
  for (std::size_t cpu = first; cpu <= last; ++cpu) {
    set.insert(cpu);
  }
  return set;
}

// Two packages of 4 CPUs; chiplets 0-2, 4-5, 6-7 (CPU 3 is in none); node 2 has memory only
// and hangs on package 1; CPU 7 is not ours.
PlaceTopology machine() {
  PlaceTopology topology;
  topology[Level::kMachine] = {{range(0, 7)}};
  topology[Level::kPackage] = {{range(0, 3)}, {range(4, 7)}};
  topology[Level::kNumaNode] = {
      {range(0, 3), range(0, 3)}, {range(4, 7), range(4, 7)}, {CpuSet{}, range(4, 7)}};
  topology[Level::kChiplet] = {{range(0, 2)}, {range(4, 5)}, {range(6, 7)}};
  for (std::size_t cpu = 0; cpu < 8; ++cpu) {
    topology[Level::kCore].push_back({range(cpu, cpu)});
    topology[Level::kPu].push_back({range(cpu, cpu)});
  }
  topology.usable = range(0, 6);
  return topology;
}

std::string cpus(const std::vector<std::string>& places) {
  return resolve_places(machine(), places).to_string();
}

std::string fault_of(const std::string& place) {
  try {
    (void)resolve_places(machine(), std::vector<std::string>{place});
  } catch (const Fault& fault) {
    return fault.what();
  }
  return "";
}

TEST(Places, Chiplets) {
  EXPECT_EQ(cpus({"chiplet:0"}), "0-2");
  EXPECT_EQ(cpus({"chiplet:0,2"}), "0-2,6-7");
  EXPECT_EQ(cpus({"chiplet:1-"}), "4-7");
  EXPECT_EQ(cpus({"package:1.chiplet:0"}), "4-5");
  EXPECT_EQ(cpus({"chiplet:all.core:0"}), "0,4,6");
  EXPECT_EQ(cpus({"numa:1.chiplet:odd.pu:1"}), "7");
}

TEST(Places, SeveralAreAppliedFromLeftToRight) {
  EXPECT_EQ(cpus({"chiplet:0", "chiplet:1"}), "0-2,4-5");
  EXPECT_EQ(cpus({"machine:0", "~chiplet:all"}), "3");
  EXPECT_EQ(cpus({"~chiplet:0", "chiplet:1"}), "4-5");
  EXPECT_EQ(cpus({"package:1", "xall"}), "4-6");
  EXPECT_EQ(cpus({"x0xff"}), "none");
  EXPECT_EQ(cpus({"0xf", "^0x3c"}), "0-1,4-5");
  EXPECT_EQ(cpus({}), "none");
}

TEST(Places, AllIsWhatIsUsable) {
  EXPECT_EQ(cpus({"all"}), "0-6");
  EXPECT_EQ(cpus({"root"}), "0-6");
  EXPECT_EQ(cpus({"0xf...f"}), "0-7");
}

TEST(Places, NodesWithoutCpusCountAmongTheirPackagesNodes) {
  EXPECT_EQ(cpus({"numa:2"}), "none");
  EXPECT_EQ(cpus({"package:1.numa:0"}), "4-7");
  EXPECT_EQ(cpus({"package:1.numa:1"}), "none");
  EXPECT_NE(fault_of("package:0.numa:1"), "");
}

TEST(Places, WhatDoesNotExistIsAFault) {
  EXPECT_EQ(fault_of("core:8"), "place 'core:8': this machine has no core:8; it has core:0-7");
  EXPECT_EQ(fault_of("core:6-9"), "place 'core:6-9': this machine has no core:9; it has core:0-7");
  EXPECT_EQ(fault_of("chiplet:1.core:2"),
            "place 'chiplet:1.core:2': chiplet:1 has no core:2; it has core:0-1");
  EXPECT_EQ(fault_of("core:0.chiplet:0"), "place 'core:0.chiplet:0': core:0 has no chiplet");
  EXPECT_EQ(fault_of("l3:0"), "place 'l3:0': this machine has no l3");
  EXPECT_EQ(fault_of("numa:3-5.die:0"), "place 'numa:3-5.die:0': this machine has no die");
  EXPECT_NE(fault_of("core:8-"), "");
  EXPECT_NE(fault_of("core:8:2"), "");
}

TEST(Places, MalformedOnesAreFaults) {
  for (const std::string place : {"core",
                                  "core:",
                                  "core:-1",
                                  "core:1-x",
                                  "core:1:",
                                  "core:3-1",
                                  "core:0,",
                                  "core:,0",
                                  "core:0..pu:0",
                                  "core:0.",
                                  ".core:0",
                                  "core:0.pu",
                                  "core:99999999999999999999",
                                  "c:0",
                                  "cor3:0",
                                  "l0:0",
                                  "l6:0",
                                  "l4i:0",
                                  "l2x:0",
                                  "group:0",
                                  "2:0",
                                  "os=eth0",
                                  "pci[:]:0",
                                  "gpu[x]:0",
                                  "0x",
                                  "0xfg",
                                  "0x1,0xfffffffff",
                                  "f,g",
                                  "0xf...",
                                  "0xf...f0",
                                  "core:allx",
                                  "core:odd-",
                                  "~~core:0",
                                  ""}) {
    EXPECT_TRUE(fault_of(place).starts_with("place '")) << place << " -> " << fault_of(place);
  }
}

TEST(Places, LookLikePlaces) {
  for (const std::string operand : {"core:0", "~core:0", "x0xf", "^all", "root", "0xff", "f,1",
                                    "os=eth0", "warp:9", "package:0.core:1"}) {
    EXPECT_TRUE(looks_like_place(operand)) << operand;
  }
  for (const std::string operand :
       {"", "true", "x", "~", "./core:0", "a-b:c", "xeyes", "grep", "java,x", "/bin/a=b", ":0"}) {
    EXPECT_FALSE(looks_like_place(operand)) << operand;
  }
}

}  // namespace
}  // namespace atl::exec
