// The atoll/machine file as places read it: whatever is in it, the answer is a topology or a
// Fault of one line.

#include "place_topology.hpp"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "atoll/topology.hpp"
#include "fault.hpp"

namespace atl::exec {
namespace {

CpuSet below(std::size_t end) {
  CpuSet set;
  set.insert_below(end);
  return set;
}

TEST(PlaceTopology, TakesTheLibrarysJson) {
  const std::string json =
      topology::discover("synthetic", "pack:2 numa:1 l3:4 l2:2 l1:1 core:1 pu:2");
  const PlaceTopology machine = parse_machine(json, "test", below(8));
  EXPECT_EQ(machine[Level::kPackage].size(), 2U);
  EXPECT_EQ(machine[Level::kNumaNode].size(), 2U);
  EXPECT_EQ(machine[Level::kChiplet].size(), 8U);
  EXPECT_EQ(machine[Level::kL3].size(), 8U);
  EXPECT_EQ(machine[Level::kL2].size(), 16U);
  EXPECT_EQ(machine[Level::kL1].size(), 16U);
  EXPECT_EQ(machine[Level::kL1i].size(), 0U);
  EXPECT_EQ(machine[Level::kCore].size(), 16U);
  EXPECT_EQ(machine[Level::kPu].size(), 32U);
  EXPECT_EQ(machine[Level::kMachine].at(0).cpus, below(32));
  EXPECT_EQ(machine.usable, below(8));
}

TEST(PlaceTopology, UsableEndsWhereTheMachineEnds) {
  const std::string json = topology::discover("synthetic", "core:2 pu:1");
  EXPECT_EQ(parse_machine(json, "test", below(64)).usable, below(2));
}

TEST(PlaceTopology, DamagedFilesAreFaultsOfOneLine) {
  const std::string whole = topology::discover("synthetic", "pack:2 numa:1 l3:2 core:2 pu:2");
  std::mt19937 random(1);
  const auto at = [&](std::size_t end) {
    return std::uniform_int_distribution<std::size_t>(0, end - 1)(random);
  };
  int refused = 0;
  for (int round = 0; round < 2000; ++round) {
    std::string text = whole;
    for (std::size_t changes = 1 + at(3); changes > 0; --changes) {
      switch (at(3)) {
        case 0: text.resize(at(text.size()) + 1); break;
        case 1: text[at(text.size())] = "0123456789-[]{}\",:a\n\xff"[at(20)]; break;
        default: text.erase(at(text.size()), at(40)); break;
      }
    }
    try {
      (void)parse_machine(text, "damaged", below(8));
    } catch (const Fault& fault) {
      const std::string line = fault.what();
      EXPECT_TRUE(line.starts_with("damaged: "));
      EXPECT_EQ(line.find('\n'), std::string::npos) << line;
      ++refused;
    }
  }
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace atl::exec
