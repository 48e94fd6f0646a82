// Groups that come and go: what they leave behind, whom they wake, how their end waits, and who
// gets a turn.
#include "atoll/runtime/group.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "atoll/runtime.hpp"
#include "runtime/parts.hpp"
#include "scheduler/team.hpp"

namespace {

using atl::test::soon;
using atl::test::with_workers;

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr int kMadeAndEnded = 20'000;
constexpr long kMostPages = 20'000;  // what they keep back to find uses after a free
#else
constexpr int kMadeAndEnded = 1'000'000;
constexpr long kMostPages = 256;
#endif

long resident_pages() {
  std::ifstream statm("/proc/self/statm");
  long size = 0;
  long resident = 0;
  statm >> size >> resident;
  return resident;
}

bool all_sleep(atl::Runtime& runtime) {
  return soon([&] { return runtime.team().parking.sleepers() == runtime.workers(); });
}

// Its number, which the next group may have.
std::size_t domain_of(const atl::Group& group) {
  return static_cast<std::size_t>(group.place().index) % atl::runtime::Domains::kMost;
}

TEST(Groups, AMillionLeaveNothingBehind) {
  atl::Runtime runtime(with_workers(4));
  std::size_t first = 0;
  long before = 0;
  for (int made = 0; made < kMadeAndEnded; ++made) {
    const atl::Group group(runtime, {.threads = 1 + made % 4});
    if (made == 0) first = domain_of(group);
    if (made == kMadeAndEnded / 10) before = resident_pages();
    ASSERT_EQ(domain_of(group), first);
  }
  EXPECT_LT(resident_pages() - before, kMostPages);
}

// Numbers go from group to group while their old members may still look for the last one's tasks.
TEST(Groups, NumbersAreUsedAgainWhileOthersWork) {
  atl::Runtime runtime(with_workers(4));
  std::atomic<int> ran{0};
  std::atomic<int> strangers{0};
  constexpr int kThreads = 4;
  constexpr int kEach = std::min(2'000, kMadeAndEnded / 50);
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      for (int made = 0; made < kEach; ++made) {
        std::vector<int> members;
        const auto look = [&] {
          ++ran;
          if (!std::ranges::count(members, atl::this_task::worker())) ++strangers;
        };
        atl::Group group(runtime, {.threads = 1 + (made + thread) % 3});
        members = group.workers();
        auto one = group.spawn([&] {
          look();
          auto child = atl::spawn(look);
          atl::yield();
          look();
          child.join();
        });
        if (made % 2 == 0) {
          one.join();
        } else {
          one.detach();  // the group waits for it
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(ran, 3 * kThreads * kEach);
  EXPECT_EQ(strangers, 0);
}

class Faulty : public atl::Approach {
 public:
  std::string name() const override { return "faulty"; }
  int begin(const atl::Sample&) const override { throw std::logic_error("no spread"); }

 protected:
  atl::Decision decide(const atl::Sample& sample) override { return {sample.spread, ""}; }
};

TEST(Groups, OneThatCannotBeMadeTakesNoNumber) {
  atl::Runtime runtime(with_workers(2));
  const std::size_t number = domain_of(atl::Group(runtime));
  const auto approach = std::make_shared<Faulty>();
  for (int tried = 0; tried < 10; ++tried) {
    EXPECT_THROW(atl::Group(runtime, {.own_approach = approach}), std::logic_error);
  }
  EXPECT_EQ(domain_of(atl::Group(runtime)), number);
}

TEST(Groups, ANewOneWakesNobody) {
  atl::Runtime runtime(with_workers(4));
  runtime.run([] {});
  ASSERT_TRUE(all_sleep(runtime));
  const std::uint64_t before = runtime.team().parking.futex_wakes();
  for (int made = 0; made < 100; ++made) {
    const atl::Group group(runtime, {.threads = 2, .approach = "static-distributed"});
  }
  EXPECT_EQ(runtime.team().parking.futex_wakes(), before);
}

TEST(Groups, TheEndOfOneWaitsAsleep) {
  atl::Runtime runtime(with_workers(2));
  atl::Event done;
  const auto yields = [&] {
    std::uint64_t sum = 0;
    for (const atl::Counts& counts : runtime.counts()) sum += counts.switches;
    return sum;
  };
  auto waits = runtime.spawn(atl::on_worker(0), [&] {
    atl::Group group(runtime, {.threads = 1});
    group.spawn([&] { done.wait(); }).detach();
  });
  ASSERT_TRUE(all_sleep(runtime)) << "a worker is busy with waiting";
  const std::uint64_t before = yields();
  done.set();
  waits.join();
  EXPECT_LT(yields() - before, 20U);
}

// One worker, and more queued than it can run meanwhile: each queue gets its turn.
TEST(Groups, NoQueueKeepsAnotherWaiting) {
  constexpr int kQueued = 2'000;
  atl::Runtime runtime(with_workers(1));
  atl::Group first(runtime);
  atl::Group second(runtime);
  for (const atl::Place crowded : {atl::Place(), first.place(), second.place()}) {
    atl::Event go;
    std::atomic<int> ran{0};
    auto gate = runtime.spawn([&] {
      while (!go.is_set()) std::this_thread::yield();
    });
    std::vector<atl::Task<>> tasks;
    for (int task = 0; task < kQueued; ++task) {
      tasks.push_back(runtime.spawn(crowded, [&] { ++ran; }));
    }
    std::vector<atl::Task<int>> others;
    for (const atl::Place place : {atl::Place(), first.place(), second.place()}) {
      if (place != crowded) others.push_back(runtime.spawn(place, [&] { return ran.load(); }));
    }
    go.set();
    for (atl::Task<int>& other : others) EXPECT_LT(other.join(), 100);
    for (atl::Task<>& task : tasks) task.join();
    gate.join();
  }
}

std::string fault_of(atl::Runtime& runtime, const atl::GroupOptions& options) {
  try {
    const atl::Group group(runtime, options);
  } catch (const atl::RuntimeFault& fault) {
    return fault.what();
  }
  return "";
}

// 4 chiplets of 2 cores, and a worker on each core.
TEST(GroupOptions, AContradictionIsAFaultOfOneLine) {
  atl::Runtime runtime(with_workers(8));
  struct Case {
    atl::GroupOptions options;
    std::string says;
  };
  for (const auto& [options, says] :
       {Case{{.spread = 5}, "give 1 to 4"}, Case{{.min_chiplets = -1}, "give 1 to 4"},
        Case{{.max_chiplets = 5}, "give 1 to 4"},
        Case{{.min_chiplets = 3, .max_chiplets = 2}, "not above max_chiplets"},
        Case{{.threads = 2, .spread = 1, .min_chiplets = 2}, "2 to 4 chiplets"},
        Case{{.threads = 2, .spread = 3}, "over 1 to 2 chiplets here"},
        Case{{.threads = 5, .max_chiplets = 2}, "over 3 to 4 chiplets here"},
        Case{{.threads = 2, .min_chiplets = 3}, "over 1 to 2 chiplets here"},
        Case{{.approach = "arcas-2025", .remember_as = "q"}, "'adaptive' or 'switchback'"},
        Case{{.approach = "arcas-2025-printed", .remember_as = "q"}, "'adaptive' or 'switchback'"},
        Case{{.approach = "static-local", .remember_as = "q"}, "'adaptive' or 'switchback'"},
        Case{{.own_approach = std::make_shared<Faulty>(), .remember_as = "q"}, "of its own"}}) {
    const std::string fault = fault_of(runtime, options);
    EXPECT_NE(fault.find(says), std::string::npos) << fault << " does not say " << says;
    EXPECT_EQ(fault.find('\n'), std::string::npos);
  }
}

TEST(GroupOptions, ItBeginsWhereItIsToldAndStaysWithinItsLimits) {
  atl::Runtime runtime(with_workers(8));
  EXPECT_EQ(atl::Group(runtime, {.threads = 4, .spread = 3}).spread(), 3);
  EXPECT_EQ(atl::Group(runtime, {.threads = 4, .min_chiplets = 3}).spread(), 3);
  atl::Group group(
      runtime,
      {.threads = 4, .approach = "static-distributed", .min_chiplets = 2, .max_chiplets = 3});
  EXPECT_EQ(group.spread(), 3);
  EXPECT_THROW(group.set_spread(4), atl::RuntimeFault);
  group.set_spread(2);
  EXPECT_EQ(group.spread(), 2);
}

TEST(GroupOptions, TheNextOfANameBeginsWithWhatWasFoundOut) {
  atl::RuntimeOptions options = with_workers(8);
  options.interval = std::chrono::hours(1);
  options.places->chiplet_l3_bytes = 32 << 20;
  atl::Runtime runtime(options);
  const auto spread_of = [&](const char* name, int first, std::optional<std::uint64_t> set) {
    atl::Group group(
        runtime, {.threads = 4, .working_set_bytes = set, .spread = first, .remember_as = name});
    group.run([] { atl::fork([] {}).join(); });
    return group.spread();
  };
  EXPECT_EQ(spread_of("join", 0, 90 << 20), 4) << "as wide as possible";
  EXPECT_EQ(spread_of("join", 0, 90 << 20), 3) << "the fewest whose L3 holds it";
  EXPECT_EQ(spread_of("scan", 2, {}), 2) << "as given";
  EXPECT_EQ(spread_of("scan", 2, {}), 2);
  EXPECT_EQ(spread_of("join", 0, 90 << 20), 3);
}

}  // namespace
