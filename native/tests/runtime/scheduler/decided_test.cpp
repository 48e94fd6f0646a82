// What the environment and the machine decide where a runtime's options leave it open.
#include "scheduler/decided.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "atoll/runtime/memory.hpp"
#include "atoll/runtime/runtime.hpp"
#include "atoll/runtime/this_task.hpp"
#include "scheduler/team.hpp"

namespace {

using atl::runtime::decided;

// A variable of the environment for the length of a test.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~Variable() { unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
};

atl::RuntimeOptions two_nodes() {
  atl::RuntimeOptions options;
  options.places = atl::synthetic_places("node:2 core:2", {0});
  return options;
}

std::string fault_of(const atl::RuntimeOptions& options) {
  try {
    decided(options);
  } catch (const atl::RuntimeFault& fault) {
    return fault.what();
  }
  return "none";
}

TEST(Decided, WithoutVariablesAWorkerPerCoreBoundAdaptive) {
  const atl::RuntimeOptions all = decided(two_nodes()).options;
  EXPECT_EQ(all.workers, 4);
  EXPECT_EQ(all.pin, true);
  EXPECT_EQ(all.approach, atl::kDefaultApproach);
}

TEST(Decided, TheEnvironmentDecidesWhatTheProgramLeavesOpen) {
  const Variable workers("ATOLL_WORKERS", "3");
  const Variable pin("ATOLL_PIN", "0");
  const Variable approach("ATOLL_APPROACH", "static:2");
  const atl::RuntimeOptions all = decided(two_nodes()).options;
  EXPECT_EQ(all.workers, 3);
  EXPECT_EQ(all.pin, false);
  EXPECT_EQ(all.approach, "static:2");

  atl::Runtime runtime(two_nodes());
  EXPECT_EQ(runtime.workers(), 3);
  EXPECT_EQ(runtime.spread(), 2);
}

TEST(Decided, TheProgramsOwnOptionsWin) {
  const Variable workers("ATOLL_WORKERS", "none");  // not even read
  const Variable pin("ATOLL_PIN", "perhaps");
  const Variable approach("ATOLL_APPROACH", "fastest");
  atl::RuntimeOptions options = two_nodes();
  options.workers = 2;
  options.pin = true;
  options.approach = "static-local";
  const atl::RuntimeOptions all = decided(options).options;
  EXPECT_EQ(all.workers, 2);
  EXPECT_EQ(all.pin, true);
  EXPECT_EQ(all.approach, "static-local");
}

TEST(Decided, AnEmptyVariableIsNotSet) {
  const Variable workers("ATOLL_WORKERS", "");
  const Variable pin("ATOLL_PIN", "");
  const Variable approach("ATOLL_APPROACH", "");
  EXPECT_EQ(decided(two_nodes()).options.workers, 4);
}

TEST(Decided, AVariableThatIsNotAllowedIsNamed) {
  for (const char* value : {"four", "0", "-1", "2 ", "32769", "99999999999999999999"}) {
    const Variable workers("ATOLL_WORKERS", value);
    EXPECT_EQ(fault_of(two_nodes()), "the environment variable ATOLL_WORKERS is '" +
                                         std::string(value) + "': give a number from 1 to 8192");
  }
  {
    const Variable pin("ATOLL_PIN", "true");
    EXPECT_EQ(fault_of(two_nodes()),
              "the environment variable ATOLL_PIN is 'true': give 1 to bind workers to their "
              "cores, or 0");
  }
  const Variable approach("ATOLL_APPROACH", "fastest");
  EXPECT_NE(fault_of(two_nodes()).find("ATOLL_APPROACH is 'fastest': no approach is called"),
            std::string::npos);
}

// Two nodes of two chiplets; the levels between them are 1, 2 and 3.
TEST(Decided, WhatFillsCostIsTheProgramsThenTheProfilesThenADefault) {
  atl::RuntimeOptions options;
  options.places = atl::synthetic_places("node:2 chiplet:2 core:1", {0});
  options.places->chiplet_levels = {{0, 1, 2, 3}, {1, 0, 3, 2}, {2, 3, 0, 1}, {3, 2, 1, 0}};
  EXPECT_EQ(decided(options).options.latency->remote_chiplet_ns, 108);
  EXPECT_EQ(decided(options).options.latency->remote_node_ns, 200);

  options.places->level_ns = {0, 50, 300, 400};
  EXPECT_EQ(decided(options).options.latency->remote_chiplet_ns, 50);
  EXPECT_EQ(decided(options).options.latency->remote_node_ns, 350);
  atl::runtime::Team team(decided(options));
  EXPECT_EQ(team.steal_costs, (atl::runtime::StealCosts{0, 200, 200, 1400}));

  options.places->level_ns = {0, 50, 0};
  EXPECT_EQ(decided(options).options.latency->remote_node_ns, 200) << "not measured";
  for (const double senseless : {1e15, -1.0, std::numeric_limits<double>::quiet_NaN()}) {
    options.places->level_ns = {0, 50, senseless, senseless};
    EXPECT_EQ(decided(options).options.latency->remote_node_ns, 200) << senseless;
  }
  options.latency = {.remote_chiplet_ns = 70};
  EXPECT_EQ(decided(options).options.latency->remote_chiplet_ns, 70);
}

TEST(Decided, PlacesMadeByHandNeedALevelForEachPairOfTheirChiplets) {
  atl::RuntimeOptions options;
  options.places = atl::Places{{{.cpus = {0}}, {.cpus = {0}, .chiplet = 1}}, {{0, 1}, {1, 0}}, 0};
  EXPECT_EQ(decided(options).options.workers, 2);
  for (const int chiplet : {2, 1'000'000, -1}) {
    options.places->cores[1].chiplet = chiplet;
    for (const std::vector<double>& known : {std::vector<double>{}, {0, 50}}) {
      options.places->level_ns = known;
      EXPECT_EQ(fault_of(options), "the places have a core on chiplet " + std::to_string(chiplet) +
                                       ", but chiplet_levels has 2 rows: give one for each "
                                       "chiplet");
    }
  }
  options.places->cores[1].chiplet = 1;
  options.places->chiplet_levels = {{0}, {1}};
  EXPECT_EQ(fault_of(options),
            "a row of the places' chiplet_levels has 1 levels: give 2, one for each chiplet");
}

TEST(Decided, PlacesMadeByHandHaveEachChipletInOneNodeAndPackage) {
  atl::RuntimeOptions options;
  options.places = atl::Places{{{.cpus = {0}}, {.cpus = {0}}}, {{0}}};
  EXPECT_EQ(decided(options).options.workers, 2);
  const char* const fault =
      "the places have cores of chiplet 0 in several nodes or packages: give each part a chiplet "
      "of its own";
  options.places->cores[1].node = 1;
  EXPECT_EQ(fault_of(options), fault);
  options.places->cores[1] = {.cpus = {0}, .package = 1};
  EXPECT_EQ(fault_of(options), fault);
}

TEST(Decided, PlacesMadeByHandHaveNumbersThatLinuxHas) {
  atl::RuntimeOptions options;
  options.places = atl::Places{{{.cpus = {0}}}, {{0}}};
  for (const int number : {-1, 1 << 20, std::numeric_limits<int>::max()}) {
    options.places->cores[0] = {.cpus = {0, number}};
    EXPECT_EQ(fault_of(options),
              "the places have a core on CPU " + std::to_string(number) + ": give 0 to 1048575");
    options.places->cores[0] = {.cpus = {0}, .node = number};
    EXPECT_EQ(fault_of(options),
              "the places have a core on node " + std::to_string(number) + ": give 0 to 1048575");
  }
}

TEST(MadeUpPlaces, HaveMemoryOnTheMachinesNodes) {
  atl::Runtime runtime(two_nodes());
  const atl::NodeMap map = runtime.node_map();
  ASSERT_EQ(map.node_of_rank.size(), 4U);
  auto rows = atl::Array<long>::partitioned(100'000, map);
  for (int rank = 0; rank < 4; ++rank) {
    for (long& row : rows.part(rank)) row = rank;
  }
  auto shared = atl::Array<long>::interleaved(100'000, map);
  shared[99'999] = 1;
  atl::Replicated<int> copies(1'000, map);
  copies.update([](std::span<int> copy) { copy[7] = 42; });
  EXPECT_EQ(copies.local()[7], 42);
  EXPECT_EQ(rows[99'999], 3);
  // A task on the made-up node finds its place, and the moved workers' arrays their nodes.
  EXPECT_EQ(runtime.spawn(atl::on_node(1), [] { return atl::this_task::core(); }).join() / 2, 1);
  EXPECT_EQ(atl::rehome_all(runtime.node_map()).failed_bytes, 0U);

  const std::vector<std::string> remarks = runtime.profile().remarks;
  EXPECT_EQ(remarks.front(), "places: made up; memory lies on the machine's own nodes");
}

TEST(MadeUpPlaces, APartOfThemIsMadeUpToo) {
  const std::vector<int> some{0, 3};
  EXPECT_TRUE(atl::restrict_to_cores(*two_nodes().places, some).made_up);
}

}  // namespace
