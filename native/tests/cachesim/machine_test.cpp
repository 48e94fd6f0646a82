// Descriptions of machines: what they give, and the one line that a bad one gets.
#include "cachesim/machine.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "cachesim/parts.hpp"

namespace atl::cachesim {
namespace {

std::string fault_of(const std::string& text) {
  try {
    (void)parse_machine(text);
  } catch (const BadMachine& fault) {
    return fault.what();
  }
  return "";
}

// Built's description with the line that begins with `start` replaced.
std::string with(const std::string& start, const std::string& line) {
  std::string text = Built{}.text();
  const std::size_t at = text.find(start);
  return text.replace(at, text.find('\n', at) - at, line);
}

TEST(CachesimMachine, HasWhatItsDescriptionSays) {
  const Machine machine = Built{.l3 = "320 11",
                                .nodes = 4,
                                .threads = 2,
                                .nodes_of_package = 2,
                                .memory_only = 1,
                                .bandwidth = "bandwidth memory 7000\n"}
                              .machine();
  EXPECT_EQ(machine.l3.sets, 320U);
  EXPECT_EQ(machine.l3.ways, 11U);
  EXPECT_EQ(machine.cpus.size(), 32U);
  EXPECT_EQ(machine.cores, 16U);
  EXPECT_EQ(machine.chiplets, 8U);
  EXPECT_EQ(machine.nodes, 5U);
  EXPECT_EQ(machine.clock_mhz, 2000U);
  EXPECT_EQ(machine.package_of_node, (std::vector<unsigned>{0, 0, 1, 1, 0}));
  EXPECT_EQ(machine.latency[kFarMemory], 80U);
  EXPECT_EQ(machine.bandwidth[kMemory], 7000U);
  EXPECT_EQ(machine.bandwidth[kLink], 0U);
}

TEST(CachesimMachine, ReadsTheDescriptionsOfTheGuests) {
  for (const auto& file : std::filesystem::directory_iterator(ATOLL_MACHINES)) {
    std::ifstream input(file.path());
    const std::string text(std::istreambuf_iterator<char>(input), {});
    EXPECT_EQ(fault_of(text), "") << file.path();
  }
}

TEST(CachesimMachine, SkipsCommentsBlankLinesAndSpaces) {
  EXPECT_EQ(fault_of("# a machine\n\n \t\r\n" + with("quantum", "  quantum\t7 \r")), "");
}

TEST(CachesimMachine, ABadLineIsNamedWithWhatItWants) {
  EXPECT_EQ(fault_of(with("l1", "l1 96 8")), "line 1: sets: wants a power of two");
  EXPECT_EQ(fault_of(with("l1", "l1 32 8")), "line 1: wants a number from 64 to 1048576");
  EXPECT_EQ(fault_of(with("l3", "l3 100 8")), "line 3: sets: wants a multiple of 64");
  EXPECT_EQ(fault_of(with("l3", "l3 64 17")), "line 3: wants a number from 1 to 16");
  EXPECT_EQ(fault_of(with("l3", "l3 64")), "line 3: ends too early");
  EXPECT_EQ(fault_of(with("l3", "l3 64 8 9")), "line 3: goes on after its end");
  EXPECT_EQ(fault_of(with("clock", "clock 0")), "line 4: wants a number from 1 to 100000");
  EXPECT_EQ(fault_of(with("quantum", "quantum 0")), "line 5: wants a number from 1 to 1000000000");
  EXPECT_EQ(fault_of(with("quantum", "quantum -1")), "line 5: wants a number from 1 to 1000000000");
  EXPECT_EQ(fault_of(with("quantum", "colour red")), "line 5: no such key");
  EXPECT_EQ(fault_of(with("quantum", "l1 64 8")), "line 5: appears twice");
  EXPECT_EQ(fault_of(with("latency l2", "latency l9 7")), "line 6: no such name");
  EXPECT_EQ(fault_of(with("latency l2", "latency own_l3 7")), "line 7: appears twice");
  EXPECT_EQ(fault_of(with("quantum", "quantum 9\nbandwidth bus 7")), "line 6: no such name");
  EXPECT_EQ(fault_of(with("quantum", "quantum 9\nbandwidth link -1")),
            "line 6: wants a number from 0 to 1000000000");
  EXPECT_EQ(fault_of(with("quantum", "quantum 9\nbandwidth link 1\nbandwidth link 2")),
            "line 7: appears twice");
  EXPECT_EQ(fault_of(with("memory 1", "memory 1 0 1048576")), "line 15: overlaps other memory");
  EXPECT_EQ(fault_of(with("memory 1", "memory 1 0 4096")),
            "line 15: wants a number from 1048576 to 68719476736");
  EXPECT_EQ(fault_of(with("memory 1", "memory 1 68719476735 1048576")),
            "line 15: wants a number from 0 to 68718428160");
  EXPECT_EQ(fault_of(with("cpu 1", "cpu 2 core 2 chiplet 0 node 0 package 0")),
            "line 17: CPUs want to be in order, from 0");
  EXPECT_EQ(fault_of(with("cpu 1", "cpu 1 core 0 chiplet 1 node 0 package 0")),
            "line 17: core: on two chiplets");
  EXPECT_EQ(fault_of(with("cpu 1", "cpu 1 core 1 chiplet 0 node 1 package 0")),
            "line 17: chiplet: on two nodes");
  EXPECT_EQ(fault_of(with("cpu 4", "cpu 4 core 4 chiplet 2 node 0 package 1")),
            "line 20: node: on two packages");
  EXPECT_EQ(fault_of(with("cpu 1", "cpu 1 chiplet 0 core 0")), "line 17: wants 'core'");
}

TEST(CachesimMachine, WhatIsMissingIsNamed) {
  EXPECT_EQ(fault_of(""), "lacks 'l1'");
  EXPECT_EQ(fault_of(with("quantum", "")), "lacks 'quantum'");
  EXPECT_EQ(fault_of(with("latency l2", "")), "lacks a latency");
}

}  // namespace
}  // namespace atl::cachesim
