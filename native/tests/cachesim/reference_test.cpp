// The caches against the reference: on random traces every count and every wait is equal.
#include "cachesim/reference.hpp"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <utility>

#include "cachesim/parts.hpp"

namespace atl::cachesim {
namespace {

struct Access {
  unsigned cpu;
  std::uint64_t address;
  bool store;
};

// Addresses of three kinds: lines that all CPUs fight for, each CPU's own, and far apart ones that
// fall into few sets. So every level overflows and lines are in every state.
class Trace {
 public:
  Trace(const Machine& machine, std::uint32_t seed) : machine_(machine), random_(seed) {}

  Access next() {
    const auto cpu = below(static_cast<unsigned>(machine_.cpus.size()));
    const Memory& memory = machine_.memory[below(static_cast<unsigned>(machine_.memory.size()))];
    std::uint64_t line = 0;
    switch (below(4)) {
      case 0: line = below(64); break;
      case 1: line = 4096 + 1024 * std::uint64_t{cpu} + below(900); break;
      case 2: line = below(64) * 2048 + below(2); break;
      default: line = below(static_cast<unsigned>(memory.bytes / kLine)); break;
    }
    return {cpu, memory.start + line * kLine + below(64), below(3) == 0};
  }

 private:
  unsigned below(unsigned bound) { return static_cast<unsigned>(random_() % bound); }

  const Machine& machine_;
  std::mt19937 random_;
};

class CachesReference : public testing::TestWithParam<std::pair<std::string, Built>> {};

TEST_P(CachesReference, CountsAndWaitsAreEqual) {
  const Machine machine = GetParam().second.machine();
  for (std::uint32_t seed = 1; seed <= 2; ++seed) {
    Simulated simulated(machine);
    Reference reference(machine);
    Trace trace(machine, seed);
    for (int at = 0; at < 12'000; ++at) {
      const auto [cpu, address, store] = trace.next();
      const std::uint32_t cycles =
          store ? simulated.store(cpu, address) : simulated.load(cpu, address);
      ASSERT_EQ(cycles, reference.access(cpu, address, store)) << "access " << at;
    }
    EXPECT_EQ(simulated.rows, reference.rows);
  }
}

// Small caches, so that a short trace overflows them all.
Built small(Built built) {
  built.l2 = "64 4";
  built.l3 = "128 4";
  return built;
}

INSTANTIATE_TEST_SUITE_P(
    Machines, CachesReference,
    testing::Values(
        std::pair{std::string("two_packages"), small({})},
        std::pair{std::string("two_nodes_a_package"), small({.nodes = 4, .nodes_of_package = 2})},
        std::pair{std::string("siblings"), small({.threads = 2})},
        std::pair{std::string("memory_only"), small({.memory_only = 1})},
        std::pair{std::string("odd_l3"), Built{.l1 = "128 3", .l2 = "64 5", .l3 = "192 3"}},
        std::pair{std::string("one_way"), Built{.l1 = "64 1", .l2 = "64 1", .l3 = "64 1"}},
        std::pair{std::string("large_l1"), Built{.l1 = "256 4", .l2 = "64 2", .l3 = "64 16"}}),
    [](const auto& info) { return info.param.first; });

}  // namespace
}  // namespace atl::cachesim
