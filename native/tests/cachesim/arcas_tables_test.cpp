// Tables 1 and 2 of arcas-runtime in shape: the access patterns of GUPS and of StreamCluster on a
// socket of EPYC Milan or two, all sizes a sixteenth. Prints what docs/simulated.md shows.
#include <gtest/gtest.h>

#include <cstdio>
#include <functional>
#include <random>
#include <utility>
#include <vector>

#include "cachesim/parts.hpp"

namespace atl::cachesim {
namespace {

constexpr unsigned kSmaller = 16;

// Eight chiplets a socket with 32 MiB of L3 each. Only the cores that work are described.
Machine milan(unsigned sockets, unsigned cores_of_chiplet) {
  return Built{.l1 = "64 2",
               .l2 = "64 8",
               .l3 = "2048 16",
               .nodes = sockets,
               .chiplets_of_node = 8,
               .cores_of_chiplet = cores_of_chiplet}
      .machine();
}

// Shares of all lines, in percent.
struct Shares {
  double own = 0, other_chiplets = 0, other_nodes = 0, memory = 0;
};

Shares shares_of(const Simulated& simulated, const Machine& machine) {
  std::uint64_t own = 0, near = 0, far = 0, memory = 0;
  std::vector<unsigned> node_of_chiplet(machine.chiplets);
  for (const Cpu& cpu : machine.cpus) node_of_chiplet[cpu.chiplet] = cpu.node;
  for (unsigned cpu = 0; cpu < machine.cpus.size(); ++cpu) {
    const Cpu& place = machine.cpus[cpu];
    for (unsigned from = 0; from < machine.chiplets; ++from) {
      const bool same_node = node_of_chiplet[from] == place.node;
      (from == place.chiplet ? own : same_node ? near : far) += simulated.from_chiplet(cpu, from);
    }
    for (unsigned node = 0; node < machine.nodes; ++node)
      memory += simulated.from_memory(cpu, node);
  }
  const double percent = 100 / static_cast<double>(own + near + far + memory);
  const auto share = [&](std::uint64_t lines) { return static_cast<double>(lines) * percent; };
  return {share(own), share(near), share(far), share(memory)};
}

// Each CPU updates words of one table at random, four times as many as it has. The table is as
// large as an L3.
Shares gups(const Machine& machine) {
  constexpr std::uint64_t kBytes = std::uint64_t{32} * 1024 * 1024 / kSmaller;
  constexpr std::uint64_t kUpdates = 4 * kBytes / sizeof(std::uint64_t);
  Simulated simulated(machine);
  const auto cpus = static_cast<unsigned>(machine.cpus.size());
  std::mt19937_64 random(1);
  for (std::uint64_t at = 0; at < kUpdates; ++at) {
    const std::uint64_t address = random() % kBytes;
    simulated.load(static_cast<unsigned>(at % cpus), address);
    simulated.store(static_cast<unsigned>(at % cpus), address);
  }
  return shares_of(simulated, machine);
}

// A batch of 200,000 points of 128 floats, shared out to the workers, which go over their parts
// four times: Tab. 2 has 34.8 million accesses to 8.4 million lines. Each time they compare all
// points with one.
Shares stream_cluster(unsigned workers, const std::function<unsigned(unsigned worker)>& cpu_of) {
  constexpr unsigned kLines = 128 * sizeof(float) / kLine, kPasses = 4;  // of a point
  constexpr std::uint64_t kPoints = 200'000 / kSmaller;
  const Machine machine = milan(1, 8);
  Simulated simulated(machine);
  for (std::uint64_t pass = 0; pass < kPasses; ++pass) {
    const std::uint64_t centre = pass * kPoints / kPasses;
    // In turn; the first workers have a point more than the last.
    for (std::uint64_t step = 0; step <= kPoints / workers; ++step) {
      for (unsigned worker = 0; worker < workers; ++worker) {
        const std::uint64_t point = worker * kPoints / workers + step;
        if (point >= (worker + 1) * kPoints / workers) continue;
        for (unsigned line = 0; line < kLines; ++line) {
          simulated.load(cpu_of(worker), (point * kLines + line) * kLine);
          simulated.load(cpu_of(worker), (centre * kLines + line) * kLine);
        }
      }
    }
  }
  return shares_of(simulated, machine);
}

TEST(ArcasTables, GupsInOneSocketLeavesTheOthersCachesAlone) {
  const Shares one = gups(milan(1, 8)), two = gups(milan(2, 4));
  for (const auto& [name, found] : {std::pair{"one socket", one}, {"two sockets", two}}) {
    std::printf("simulated, GUPS, %s: own %.1f, node's %.1f, other nodes' %.1f, memory %.1f %%\n",
                name, found.own, found.other_chiplets, found.other_nodes, found.memory);
  }
  EXPECT_EQ(one.other_nodes, 0);
  EXPECT_NEAR(two.other_nodes / (100 - two.memory), 0.5, 0.01);
}

// A batch is 98 MiB. Two chiplets hold 72 MiB in L2 and L3, four 144 MiB.
TEST(ArcasTables, StreamClusterSpreadOverAllChipletsReadsMemoryOnce) {
  for (const unsigned workers : {8U, 16U, 32U, 64U}) {
    const Shares spread =
        stream_cluster(workers, [](unsigned worker) { return worker % 8 * 8 + worker / 8; });
    const Shares dense = stream_cluster(workers, [](unsigned worker) { return worker; });
    for (const auto& [name, found] : {std::pair{"spread", spread}, {"dense", dense}}) {
      std::printf("simulated, StreamCluster, %u cores %s: own %.1f, node's %.1f, memory %.1f %%\n",
                  workers, name, found.own, found.other_chiplets, found.memory);
    }
    EXPECT_NEAR(spread.memory, 25, 1) << workers;
    EXPECT_NEAR(spread.own, 75, 1) << workers;
    EXPECT_NEAR(dense.memory, workers < 32 ? 98 : 25, 1) << workers;
  }
}

}  // namespace
}  // namespace atl::cachesim
