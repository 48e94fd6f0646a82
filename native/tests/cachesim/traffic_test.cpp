// Waits for links, memories and interconnects: who asks for more than the capacity gets the
// capacity, and below it the waits are nearly those of an exact queue.
#include "cachesim/traffic.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

#include "cachesim/clock.hpp"
#include "cachesim/parts.hpp"

namespace atl::cachesim {
namespace {

constexpr std::uint64_t kWindow = Traffic::kWindow;
constexpr unsigned kCpus = 8;             // of a chiplet
constexpr double kLocal = 60, kFar = 80;  // latencies of Built

// So many cycles for a line.
std::string taking(const char* what, double cycles) {
  const auto bytes = std::lround(kLine * 1000 / cycles);
  return "bandwidth " + std::string(what) + " " + std::to_string(bytes) + "\n";
}

Machine machine_with(const std::string& bandwidth) {
  return Built{.cores_of_chiplet = kCpus, .bandwidth = bandwidth}.machine();
}

std::vector<unsigned> cpus_of(unsigned first_chiplet, unsigned chiplets = 1) {
  std::vector<unsigned> cpus(std::size_t{chiplets} * kCpus);
  std::iota(cpus.begin(), cpus.end(), first_chiplet * kCpus);
  return cpus;
}

struct Counted {
  double lines_per_cycle = 0;
  double wait = 0;  // of a line, in cycles
};

// CPUs that stream, simulated in the order of their times. Each reads lines that no cache has.
class Streams {
 public:
  explicit Streams(const Machine& machine)
      : simulated_(machine), times_(machine.cpus.size()), next_(machine.cpus.size()) {}

  bool stores = false;
  std::function<double(unsigned cpu)> think = [](unsigned) { return 1; };  // cycles after a line

  Counted run(const std::vector<unsigned>& cpus, unsigned node, std::uint64_t windows) {
    const double end = now_ + static_cast<double>(windows * kWindow);
    const Row before = sum(cpus);
    for (const unsigned cpu : cpus) times_[cpu] = std::max(times_[cpu], now_);
    while (true) {
      const unsigned cpu =
          *std::ranges::min_element(cpus, {}, [&](unsigned at) { return times_[at]; });
      simulated_.caches.traffic().settle(static_cast<std::uint64_t>(times_[cpu]));
      if (times_[cpu] >= end) break;
      step(cpu, node);
    }
    now_ = end;
    const Row after = sum(cpus);
    const auto grown = [&](unsigned at) {
      return static_cast<double>(after.columns[at] - before.columns[at]);
    };
    const double lines = grown(kFromMemory + node);
    return {(lines + grown(kWritten + node)) / static_cast<double>(windows * kWindow),
            grown(kQueued) / lines};
  }

 private:
  void step(unsigned cpu, unsigned node) {
    constexpr std::uint64_t kLines = 32'768;  // of a CPU on a node, far more than the caches hold
    const std::uint64_t line = cpu * kLines + next_[cpu]++ % kLines;
    std::uint64_t* const row = simulated_.rows[cpu].data();
    times_[cpu] += simulated_.caches.access(cpu, node * kNodeBytes + line * kLine, stores, row);
    times_[cpu] += think(cpu);
    std::uint64_t none[kColumns] = {};
    std::uint64_t* const rows[] = {row, none};
    simulated_.caches.traffic().report(cpu, rows, static_cast<std::uint64_t>(times_[cpu]));
  }
  Row sum(const std::vector<unsigned>& cpus) const {
    Row all{};
    for (const unsigned cpu : cpus) {
      for (unsigned at = 0; at < kColumns; ++at) all.columns[at] += simulated_.rows[cpu][at];
    }
    return all;
  }

  Simulated simulated_;
  std::vector<double> times_;
  std::vector<std::uint64_t> next_;
  double now_ = 0;
};

// The same with an exact queue: first come, first served.
Counted exact(double service, unsigned cpus, double latency,
              const std::function<double(unsigned)>& think) {
  constexpr double kCycles = 2'000'000;
  std::vector<double> times(cpus);
  double idle_from = 0, waited = 0, lines = 0;
  while (true) {
    const auto next = std::ranges::min_element(times);
    if (*next >= kCycles) return {lines / kCycles, waited / lines};
    const double wait = std::max(0.0, idle_from - *next);
    idle_from = *next + wait + service;
    waited += wait;
    lines += 1;
    *next += wait + latency + think(static_cast<unsigned>(next - times.begin()));
  }
}

TEST(CachesimTraffic, WithoutLimitsNothingWaits) {
  Streams streams(machine_with(""));
  const Counted counted = streams.run(cpus_of(0), 0, 20);
  EXPECT_EQ(counted.wait, 0);
  EXPECT_NEAR(counted.lines_per_cycle, kCpus / (kLocal + 1), 0.001);
}

TEST(CachesimTraffic, OneCpuBelowTheCapacityNeverWaits) {
  for (const char* what : kBandwidthNames) {
    Streams streams(machine_with(taking(what, 50)));
    EXPECT_EQ(streams.run({0}, 1, 20).wait, 0) << what;
  }
}

TEST(CachesimTraffic, OneCpuAboveTheCapacityGetsTheCapacity) {
  Streams streams(machine_with(taking("link", 200)));
  streams.run({0}, 0, 20);
  EXPECT_NEAR(streams.run({0}, 0, 50).lines_per_cycle * 200, 1, 0.01);
}

// Two to eight times what there is.
TEST(CachesimTraffic, AChipletGetsWhatItsLinkCarries) {
  for (const double load : {2.0, 4.0, 8.0}) {
    const double service = load * (kLocal + 1) / kCpus;
    Streams streams(machine_with(taking("link", service)));
    streams.run(cpus_of(0), 0, 20);
    EXPECT_NEAR(streams.run(cpus_of(0), 0, 50).lines_per_cycle * service, 1, 0.02) << load;
  }
}

TEST(CachesimTraffic, ChipletsShareTheMemoryOfANode) {
  const double service = 2 * (kLocal + 1) / (2 * kCpus);
  Streams streams(machine_with(taking("memory", service)));
  streams.run(cpus_of(0, 2), 0, 20);
  EXPECT_NEAR(streams.run(cpus_of(0, 2), 0, 50).lines_per_cycle * service, 1, 0.02);
  EXPECT_EQ(streams.run({2 * kCpus}, 1, 20).wait, 0);  // of another node
}

TEST(CachesimTraffic, PackagesShareTheWayBetweenThem) {
  const double service = 3 * (kFar + 1) / (2 * kCpus);
  Streams streams(machine_with(taking("interconnect", service)));
  streams.run(cpus_of(0, 2), 1, 20);
  EXPECT_NEAR(streams.run(cpus_of(0, 2), 1, 50).lines_per_cycle * service, 1, 0.02);
  EXPECT_EQ(streams.run({2 * kCpus}, 0, 20).wait, 0);  // the other direction
}

TEST(CachesimTraffic, WhatIsWrittenBackTakesItsPart) {
  const double service = 2 * (kLocal + 1) / kCpus;
  Streams streams(machine_with(taking("memory", service)));
  streams.stores = true;
  streams.run(cpus_of(0), 0, 40);
  EXPECT_NEAR(streams.run(cpus_of(0), 0, 50).lines_per_cycle * service, 1, 0.02);
}

TEST(CachesimTraffic, TwoEqualLimitsAreNoNarrowerThanOne) {
  const double service = 3 * (kLocal + 1) / kCpus;
  Streams streams(machine_with(taking("link", service) + taking("memory", service)));
  streams.run(cpus_of(0), 0, 20);
  EXPECT_NEAR(streams.run(cpus_of(0), 0, 50).lines_per_cycle * service, 1, 0.02);
}

TEST(CachesimTraffic, ACpuWithFewLinesDoesNotDisturb) {
  const double service = 150;
  Streams streams(machine_with(taking("link", service)));
  streams.think = [](unsigned cpu) { return cpu < 2 ? 1 : 5000; };
  streams.run(cpus_of(0), 0, 40);
  EXPECT_NEAR(streams.run(cpus_of(0), 0, 100).lines_per_cycle * service, 1, 0.05);
}

TEST(CachesimTraffic, TheWaitEndsWithTheLoad) {
  Streams streams(machine_with(taking("link", 30)));
  EXPECT_GT(streams.run(cpus_of(0), 0, 20).wait, 100);
  streams.run({0}, 0, 2);
  EXPECT_EQ(streams.run({0}, 0, 20).wait, 0);
}

// CPU 0 says that it got this number of lines of node 0 in a window, whatever it was.
void report(Traffic& traffic, std::uint64_t lines, std::uint64_t window) {
  std::uint64_t row[kColumns] = {}, none[kColumns] = {};
  row[kFromMemory] = lines;
  std::uint64_t* const rows[] = {row, none};
  traffic.report(0, rows, window * kWindow);
}

TEST(CachesimTraffic, WhatIsReportedBeforeAClearIsForgotten) {
  Traffic traffic(machine_with(taking("link", 50)));
  report(traffic, kWindow, 1);
  traffic.clear();
  traffic.settle(kWindow);
  EXPECT_EQ(traffic.wait_from_memory(0, 0), 0U);
}

// The guest may write to the rows. The square of 2^32 has 65 bits.
TEST(CachesimTraffic, NoNumberOfARowBreaksTheWaits) {
  for (const std::uint64_t lines : {std::uint64_t{1} << 32, ~std::uint64_t{0}}) {
    Traffic traffic(machine_with(taking("link", 50)));
    report(traffic, lines, 1);
    traffic.settle(kWindow);
    EXPECT_EQ(traffic.wait_from_memory(0, 0), 50U) << lines;
    report(traffic, lines + kWindow, 2);  // fifty times too many
    traffic.settle(2 * kWindow);
    EXPECT_EQ(traffic.wait_from_memory(0, 0), 99U) << lines;
  }
}

// Thinking for random times, as an exact queue has it.
TEST(CachesimTraffic, WaitsAreNearlyThoseOfAQueue) {
  for (const double load : {0.2, 0.5, 0.8, 1.0, 1.3, 2.0}) {
    const double service = load * 2 * kLocal / kCpus;
    std::mt19937 random(1);
    std::exponential_distribution<double> thinking(1 / kLocal);
    const auto think = [&](unsigned) { return thinking(random); };
    const Counted queue = exact(service, kCpus, kLocal, think);
    Streams streams(machine_with(taking("link", service)));
    streams.think = think;
    streams.run(cpus_of(0), 0, 20);
    const Counted counted = streams.run(cpus_of(0), 0, 180);
    EXPECT_NEAR(counted.lines_per_cycle / queue.lines_per_cycle, 1, 0.05) << load;
    EXPECT_NEAR(counted.wait, queue.wait, service / 2) << load;
  }
}

// Each CPU by a thread of its own, kept together by the clock.
TEST(CachesimTraffic, ThreadsGetTheCapacityToo) {
  constexpr double kService = 15;
  constexpr std::uint64_t kEnd = 60 * kWindow, kBegin = 20 * kWindow;
  Simulated simulated(machine_with(taking("link", kService)));
  Traffic& traffic = simulated.caches.traffic();
  Clock clock(kCpus, 1000, std::chrono::seconds(100));
  for (unsigned cpu = 0; cpu < kCpus; ++cpu) clock.resume(cpu);
  std::atomic<std::uint64_t> lines{0};
  const auto run = [&](unsigned cpu) {
    std::uint64_t* const row = simulated.rows[cpu].data();
    std::uint64_t none[kColumns] = {};
    std::uint64_t* const rows[] = {row, none};
    std::uint64_t line = cpu * 32'768ULL, spent = 0, begun = 0;
    while (clock.cycles(cpu) < kEnd) {
      spent += 1 + simulated.load(cpu, line++ * kLine);
      if (spent < 1000) continue;
      traffic.report(cpu, rows, clock.cycles(cpu) + spent);
      EXPECT_TRUE(clock.spend(cpu, spent));
      traffic.settle(clock.slowest());
      spent = 0;
      if (clock.cycles(cpu) < kBegin) begun = row[kFromMemory];
    }
    clock.idle(cpu);
    lines.fetch_add(row[kFromMemory] - begun);
  };
  std::vector<std::thread> threads;
  for (unsigned cpu = 0; cpu < kCpus; ++cpu) threads.emplace_back(run, cpu);
  for (std::thread& thread : threads) thread.join();
  EXPECT_NEAR(static_cast<double>(lines.load()) * kService / (kEnd - kBegin), 1, 0.05);
}

}  // namespace
}  // namespace atl::cachesim
