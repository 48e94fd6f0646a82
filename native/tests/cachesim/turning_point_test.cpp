// Fig. 5 of arcas-runtime and Fig. 10 of olap-on-chiplets: eight cores of one chiplet of an EPYC
// 7713, or one core of each of its eight, go over an array again and again. At which size is which
// better? All sizes are a 128th, except that L1 is as large as L2 (a core has at least 4 KiB).
// Prints what docs/simulated.md shows.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "cachesim/parts.hpp"

namespace atl::cachesim {
namespace {

constexpr std::uint64_t kMib = 1024 * 1024 / 128;  // of the real machine
constexpr unsigned kWorkers = 8;
constexpr unsigned kWork = 8;  // cycles for a line: it has eight numbers

enum class Pattern {
  kStay,   // each worker writes the same part in each round
  kMove,   // each worker writes the part that its neighbour wrote in the round before
  kTriad,  // each worker reads its parts of two arrays, and writes that of a third
};

// All cores of a socket, for which `epyc-7713x2.txt` has four chiplets of two cores. Ten lines are
// under way for each core (docs/simulated.md, Bandwidth).
Machine whole_socket() {
  const std::ifstream file(std::string(ATOLL_MACHINES) + "/epyc-7713x2.txt");
  std::stringstream text;
  text << file.rdbuf();
  const Machine sixteen_cpus = parse_machine(text.str());
  Machine machine = Built{.l1 = "64 1",
                          .l2 = "64 1",
                          .l3 = "256 16",
                          .nodes = 1,
                          .chiplets_of_node = 8,
                          .cores_of_chiplet = 8}
                        .machine();
  std::ranges::copy(sixteen_cpus.latency, machine.latency);
  machine.bandwidth[kLink] = sixteen_cpus.bandwidth[kLink] * 8 / 2;
  machine.bandwidth[kMemory] = sixteen_cpus.bandwidth[kMemory] * 64 / 8;
  return machine;
}

// Cycles that a worker takes for a line, after the first round. Worker n is on CPU n * `apart`.
// `bytes`: of the array, or of the three together.
double cycles_of_line(const Machine& machine, unsigned apart, Pattern pattern,
                      std::uint64_t bytes) {
  constexpr std::uint64_t kCounted = 2000;  // lines of each array for each worker
  const std::uint64_t arrays = pattern == Pattern::kTriad ? 3 : 1;
  const std::uint64_t part = bytes / kLine / kWorkers / arrays;  // lines
  Simulated simulated(machine);
  Traffic& traffic = simulated.caches.traffic();
  std::uint64_t times[kWorkers] = {}, begun = 0, none[kColumns] = {};
  for (std::uint64_t step = 0; step < part + kCounted; ++step) {
    const std::uint64_t round = step / part, line = step % part;
    if (line == 0) std::ranges::fill(times, std::ranges::max(times));  // they wait for each other
    if (step == part) begun = times[0];
    for (unsigned worker = 0; worker < kWorkers; ++worker) {
      const unsigned cpu = worker * apart;
      const std::uint64_t chunk = pattern == Pattern::kMove ? (worker + round) % kWorkers : worker;
      for (std::uint64_t array = arrays; array-- > 0;) {
        const std::uint64_t at = ((array * kWorkers + chunk) * part + line) * kLine;
        times[worker] += kWork + (array == 0 ? simulated.store(cpu, at) : simulated.load(cpu, at));
      }
      std::uint64_t* const rows[] = {simulated.rows[cpu].data(), none};
      traffic.report(cpu, rows, times[worker]);
    }
    traffic.settle(std::ranges::min(times));
  }
  return static_cast<double>(std::ranges::max(times) - begun) /
         static_cast<double>(kCounted * arrays);
}

struct Compared {
  double one = 0, eight = 0;  // chiplets: cycles for a line
  [[nodiscard]] double ratio() const { return one / eight; }
};

Compared compared(const Machine& machine, Pattern pattern, std::uint64_t bytes) {
  return {cycles_of_line(machine, 1, pattern, bytes), cycles_of_line(machine, 8, pattern, bytes)};
}

// An L3 has 32 MiB, eight have 256 MiB.
TEST(TurningPoint, EightChipletsAreBetterFromOneL3ToAll) {
  const Machine machine = whole_socket();
  for (const unsigned mib : {2U, 8U, 32U, 64U, 256U, 512U, 1536U}) {
    for (const auto& [name, pattern] : {std::pair{"write, parts stay", Pattern::kStay},
                                        {"write, parts move", Pattern::kMove},
                                        {"triad, parts stay", Pattern::kTriad}}) {
      const Compared found = compared(machine, pattern, mib * kMib);
      std::printf("simulated, %s, %4u MiB: one chiplet %.0f, eight %.0f cycles, ratio %.2f\n", name,
                  mib, found.one, found.eight, found.ratio());
      const bool stay = pattern != Pattern::kMove;
      if (mib <= 32) {
        EXPECT_NEAR(found.ratio(), stay ? 1 : 0.136, 0.001) << name << mib;
      } else if (mib <= 256) {
        EXPECT_GT(found.ratio(), stay ? 8 : 1.2) << name << mib;
      } else {
        EXPECT_NEAR(found.ratio(), 1.09, 0.02) << name << mib;
      }
    }
  }
}

// With more lines under way for each core, as prefetchers have, it is that of a link against half
// of the memory's: each line comes and goes.
TEST(TurningPoint, BeyondAllL3sItIsTheBandwidth) {
  for (const auto& [under_way, ratio] : {std::pair{10U, 1.09}, {20U, 1.57}, {40U, 2.0}}) {
    Machine machine = whole_socket();
    for (std::uint32_t& bytes : machine.bandwidth) bytes = bytes * 10 / under_way;
    const Compared found = compared(machine, Pattern::kStay, 512 * kMib);
    std::printf("simulated, write, parts stay, 512 MiB, %u lines under way: ratio %.2f\n",
                under_way, found.ratio());
    EXPECT_NEAR(found.ratio(), ratio, 0.02);
  }
}

}  // namespace
}  // namespace atl::cachesim
