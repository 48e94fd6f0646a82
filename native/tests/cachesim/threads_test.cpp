// The caches under many threads: with lines of their own the counts are those of one thread; on
// shared lines no access is lost, and the caches and the directory agree afterwards.
#include <gtest/gtest.h>

#include <random>
#include <thread>
#include <vector>

#include "cachesim/parts.hpp"
#include "cachesim/ways.hpp"

namespace atl::cachesim {

// Compares the tags of all caches with the directory, line by line. No access may be under way.
class Inspector {
 public:
  static void inspect(Caches& caches, std::uint64_t lines) {
    for (Tag line = 0; line < lines; ++line) {
      const Held& held = caches.directory_[line];
      for (const Caches::Core& core : caches.cores_) {
        Tag* const l1 = caches.l1_set(core, line);
        Tag* const l2 = caches.l2_set(core, line);
        const std::uint32_t first = find(l1, caches.l1_.ways, line << 1, 1);
        const bool in_l1 = first < caches.l1_.ways;
        const bool in_l2 = find(l2, caches.l2_.ways, line) < caches.l2_.ways;
        ASSERT_EQ(in_l2, (held.cores & core.bit) != 0) << line;
        ASSERT_TRUE(in_l2 || !in_l1) << line;
        if (in_l1 && (l1[first] & 1U) != 0) {
          ASSERT_EQ(held.cores, core.bit) << line;
          ASSERT_EQ(held.state, Held::kDirty) << line;
        }
      }
      for (const Caches::Chiplet& chiplet : caches.chiplets_) {
        Tag* const l3 = caches.l3_set(chiplet, line);
        ASSERT_EQ(find(l3, caches.l3_.ways, line) < caches.l3_.ways,
                  (held.state & chiplet.bit) != 0)
            << line;
      }
    }
  }
};

namespace {

constexpr unsigned kThreads = 8;

template <typename Body>
void in_threads(const Body& body) {
  std::vector<std::thread> threads;
  for (unsigned cpu = 0; cpu < kThreads; ++cpu) threads.emplace_back(body, cpu);
  for (std::thread& thread : threads) thread.join();
}

TEST(CachesThreads, LinesOfTheirOwnAreCountedAsByOneThread) {
  const Machine machine = Built{}.machine();
  // 700 lines of a CPU do not fit into its L2. Those of a chiplet's two, at most six in a set, fit
  // into its L3, so that what one CPU pushes out does not depend on the other.
  const auto run = [](Simulated& simulated, unsigned cpu) {
    std::mt19937 random(cpu);
    for (int at = 0; at < 20'000; ++at) {
      const std::uint64_t line = cpu * 1024 + random() % 700;
      if (random() % 3 == 0) {
        simulated.store(cpu, line * kLine);
      } else {
        simulated.load(cpu, line * kLine);
      }
    }
  };
  Simulated together(machine), alone(machine);
  in_threads([&](unsigned cpu) { run(together, cpu); });
  for (unsigned cpu = 0; cpu < kThreads; ++cpu) run(alone, cpu);
  EXPECT_EQ(together.rows, alone.rows);
}

TEST(CachesThreads, OnSharedLinesNothingIsLost) {
  constexpr std::uint64_t kAccesses = 30'000, kLines = 6000;
  for (const unsigned threads_of_core : {1U, 2U}) {
    Simulated simulated(Built{.threads = threads_of_core}.machine());
    in_threads([&](unsigned cpu) {
      std::mt19937 random(cpu);
      for (std::uint64_t at = 0; at < kAccesses; ++at) {
        const std::uint64_t line = random() % 2 ? random() % 16 : random() % kLines;
        if (random() % 2) {
          simulated.store(cpu, line * kLine);
        } else {
          simulated.load(cpu, line * kLine);
        }
      }
    });
    for (unsigned cpu = 0; cpu < kThreads; ++cpu) {
      EXPECT_EQ(simulated.rows[cpu][kLoads] + simulated.rows[cpu][kStores], kAccesses);
    }
    Inspector::inspect(simulated.caches, kLines);
  }
}

}  // namespace
}  // namespace atl::cachesim
