// Approaches and readers of fills that throw, on the governor's thread.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "atoll/runtime/controller.hpp"
#include "atoll/runtime/fork.hpp"
#include "atoll/runtime/group.hpp"
#include "atoll/runtime/runtime.hpp"
#include "runtime/parts.hpp"

namespace {

using atl::test::soon;
using atl::test::with_workers;

atl::RuntimeOptions often() {
  atl::RuntimeOptions options = with_workers(4);
  options.interval = std::chrono::milliseconds(1);
  return options;
}

void fork_and_join() {
  atl::fork([] {}).join();
}

struct Modest : atl::Approach {
  std::string name() const override { return "modest"; }
  atl::Decision decide(const atl::Sample& sample) override {
    ++asked;
    return {sample.spread, "stays"};
  }
  std::atomic<int> asked{0};
};

TEST(FaultyApproach, ThatThrowsIsNotAskedAgain) {
  struct Faulty : atl::Approach {
    std::string name() const override { return "faulty"; }
    atl::Decision decide(const atl::Sample&) override {
      ++asked;
      throw std::runtime_error("no idea");
    }
    std::atomic<int> asked{0};
  };
  atl::Runtime runtime(often());
  const auto approach = std::make_shared<Faulty>();
  atl::Group group(runtime, {.threads = 2, .own_approach = approach});
  const int spread = group.spread();
  EXPECT_TRUE(soon([&] {
    group.run(fork_and_join);
    return group.reason().find("threw: no idea") != std::string::npos;
  })) << group.reason();
  for (int times = 0; times < 1000; ++times) group.run(fork_and_join);
  EXPECT_EQ(approach->asked, 1);
  EXPECT_EQ(group.spread(), spread);
}

TEST(FaultyApproach, ThatThrowsWhenTheUserLooksIsNotAskedAgain) {
  struct Faulty : atl::Approach {
    std::string name() const override { return "faulty"; }
    atl::Decision decide(const atl::Sample&) override {
      ++asked;
      throw std::runtime_error("no idea");
    }
    int asked = 0;
  };
  atl::RuntimeOptions options = with_workers(2);
  options.interval = std::chrono::hours(1);
  const auto approach = std::make_shared<Faulty>();
  options.own_approach = approach;
  atl::Runtime runtime(options);
  const int spread = runtime.spread();
  for (int times = 0; times < 2; ++times) EXPECT_NO_THROW(runtime.look());
  EXPECT_EQ(approach->asked, 1);
  EXPECT_EQ(runtime.spread(), spread);
  EXPECT_NE(runtime.reason().find("threw: no idea"), std::string::npos) << runtime.reason();
}

TEST(FaultyApproach, AReaderOfFillsThatThrowsLeavesTheSpreadAsItIs) {
  atl::RuntimeOptions options = often();
  options.fills = [](int) -> atl::Fills { throw 1; };
  atl::Runtime runtime(options);
  atl::Group group(runtime, {.threads = 2, .own_approach = std::make_shared<Modest>()});
  EXPECT_TRUE(soon([&] {
    group.run(fork_and_join);
    return group.reason().find("threw: no std::exception") != std::string::npos;
  })) << group.reason();
}

TEST(FaultyApproach, WithoutMemoryIsAskedAgainAndStopsNoOther) {
  struct Greedy : atl::Approach {
    std::string name() const override { return "greedy"; }
    atl::Decision decide(const atl::Sample&) override {
      ++asked;
      throw std::bad_alloc();
    }
    std::atomic<int> asked{0};
  };
  atl::Runtime runtime(often());
  const auto greedy = std::make_shared<Greedy>();
  atl::Group first(runtime, {.threads = 2, .own_approach = greedy});
  const auto modest = std::make_shared<Modest>();
  atl::Group second(runtime, {.threads = 2, .own_approach = modest});
  EXPECT_TRUE(soon([&] {
    first.run(fork_and_join);
    second.run(fork_and_join);
    return greedy->asked >= 2 && modest->asked >= 1;
  }));
  EXPECT_EQ(first.reason(), "out of memory");
}

// Else it would learn from what was done before, and by others.
TEST(FaultyApproach, WhoseFirstLookLacksMemoryBeginsWithTheSecond) {
  struct Reads : Modest {
    atl::Decision decide(const atl::Sample& sample) override {
      if (!sample.fills.memory) ++without_fills;
      return Modest::decide(sample);
    }
    std::atomic<int> without_fills{0};
  };
  atl::RuntimeOptions options = often();
  std::atomic<int> reads{0};
  options.fills = [&](int) -> atl::Fills {
    if (reads++ == 0) throw std::bad_alloc();
    return {.memory = 1};
  };
  const auto approach = std::make_shared<Reads>();
  options.own_approach = approach;
  atl::Runtime runtime(options);
  EXPECT_TRUE(soon([&] {
    runtime.spawn(fork_and_join).join();  // a caller of `run` may run it itself, which nobody sees
    return approach->asked >= 2;
  }));
  EXPECT_EQ(approach->without_fills, 0);
}

// Maps all to core 7 until it throws.
struct FaultyMap : atl::Approach {
  std::string name() const override { return "faulty map"; }
  std::vector<int> map(const atl::Places&, std::span<const int> now, int) const override {
    if (throws) throw std::runtime_error("no map");
    return std::vector<int>(now.size(), 7);
  }
  atl::Decision decide(const atl::Sample& sample) override { return {sample.spread, "stays"}; }
  std::atomic<bool> throws{false};
};

TEST(FaultyApproach, WhoseMapThrowsIsMappedByOurs) {
  atl::RuntimeOptions options = with_workers(2);
  const auto of_team = std::make_shared<FaultyMap>();
  const auto of_group = std::make_shared<FaultyMap>();
  options.own_approach = of_team;
  atl::Runtime runtime(options);
  atl::Group group(runtime, {.threads = 1, .own_approach = of_group});
  EXPECT_EQ(runtime.cores(), (std::vector<int>{7, 7}));
  of_team->throws = true;
  of_group->throws = true;
  runtime.set_spread(2);
  EXPECT_EQ(runtime.cores(), (std::vector<int>{0, 2}));
  EXPECT_NE(group.reason().find("threw: no map"), std::string::npos) << group.reason();
  runtime.set_spread(1);
  EXPECT_EQ(runtime.cores(), (std::vector<int>{0, 1}));
  group.run(fork_and_join);
}

TEST(FaultyApproach, WhoseMapThrowsIsNotTakenForMovedByHand) {
  atl::Runtime runtime(with_workers(4));
  const auto approach = std::make_shared<FaultyMap>();
  atl::Group group(runtime, {.threads = 2, .own_approach = approach});
  approach->throws = true;
  EXPECT_THROW(group.set_spread(2), std::runtime_error);
  EXPECT_EQ(group.spread(), 1);
  EXPECT_EQ(group.reason(), "");
  approach->throws = false;
  group.set_spread(2);
  EXPECT_EQ(group.reason(), "set by hand");
}

TEST(FaultyApproach, WhoseMapLacksMemoryKeepsNoOtherFromItsSeats) {
  struct Greedy : Modest {
    std::vector<int> map(const atl::Places&, std::span<const int>, int) const override {
      throw std::bad_alloc();
    }
  };
  atl::Runtime runtime(often());
  const atl::Group first(runtime, {.threads = 1, .own_approach = std::make_shared<Greedy>()});
  const atl::Group second(runtime, {.threads = 2, .own_approach = std::make_shared<Modest>()});
  EXPECT_EQ(second.spread(), 1);
  EXPECT_THROW(runtime.set_spread(4), std::bad_alloc);
  EXPECT_EQ(second.spread(), 2) << "no two workers share a chiplet";
  EXPECT_EQ(first.spread(), 1);
  EXPECT_TRUE(soon([&] {
    return first.reason().find("threw: std::bad_alloc") != std::string::npos;
  })) << "the governor tries for ever: "
      << first.reason();
}

}  // namespace
