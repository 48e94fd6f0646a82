// What the governor sees and when it asks: meters, groups that come and go, tasks longer than an
// interval.
#include "scheduler/governor.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "atoll/runtime/group.hpp"
#include "atoll/runtime/runtime.hpp"
#include "profiler/clock.hpp"
#include "runtime/parts.hpp"
#include "scheduler/meter.hpp"
#include "scheduler/team.hpp"
#include "scheduler/worker.hpp"

namespace {

using atl::Sample;
using atl::runtime::Meter;
using atl::test::soon;
using atl::test::with_workers;

constexpr auto kExists = [](Meter::Key) { return true; };

std::map<Meter::Key, Meter::Sum> sums_of(const Meter& meter, std::int64_t now_ns,
                                         std::uint64_t forks = 0) {
  std::vector<Meter::Sum> sums;
  meter.read(now_ns, [&] { return forks; }, sums);
  std::map<Meter::Key, Meter::Sum> by_key;
  for (const Meter::Sum& sum : sums) {
    by_key[sum.key].units += sum.units;
    by_key[sum.key].busy_ns += sum.busy_ns;
  }
  return by_key;
}

TEST(Meter, EveryTypeHasACellOfItsOwn) {
  Meter meter;
  constexpr Meter::Key kTypes = 3000;
  for (int times = 0; times < 2; ++times) {
    for (Meter::Key key = 1; key <= kTypes; ++key) {
      meter.begin(key, 0, 0);
      meter.end(key, static_cast<std::int64_t>(2 * key), kExists);
    }
  }
  auto sums = sums_of(meter, 0);
  ASSERT_EQ(sums.size(), kTypes);
  for (Meter::Key key = 1; key <= kTypes; ++key) {
    EXPECT_EQ(sums[key].units, 2 * (1 + key));
    EXPECT_EQ(sums[key].busy_ns, 4 * key);
  }
}

TEST(Meter, ForgetsTheTypesOfDomainsThatNoLongerExist) {
  Meter meter;
  for (Meter::Key key = 1; key <= 100'000; ++key) {
    meter.begin(key, 0, 0);
    meter.end(0, 1, [&](Meter::Key other) { return other + 10 > key; });
  }
  EXPECT_LE(meter.size(), 128U);
  auto sums = sums_of(meter, 0);
  EXPECT_EQ(sums[100'000].units, 1U);
  EXPECT_EQ(sums[99'999].units, 1U);
}

TEST(Meter, AJobCountsWhileItRuns) {
  Meter meter;
  meter.begin(7, 100, 1000);
  EXPECT_EQ(sums_of(meter, 1300, 105)[7].busy_ns, 300U);
  EXPECT_EQ(sums_of(meter, 1300, 105)[7].units, 5U);
  meter.end(110, 1500, kExists);
  EXPECT_EQ(sums_of(meter, 1600, 110)[7].busy_ns, 500U);
  EXPECT_EQ(sums_of(meter, 1600, 110)[7].units, 11U);
}

TEST(Meter, IsReadWhileItsWorkerGoesOn) {
  Meter meter;
  std::atomic<bool> over{false};
  std::thread reader([&] {
    std::map<Meter::Key, Meter::Sum> before;
    while (!over) {
      auto now = sums_of(meter, 0);
      for (const auto& [key, sum] : before) EXPECT_GE(now[key].units, sum.units);
      before = std::move(now);
    }
  });
  for (Meter::Key key = 1; key <= 20'000; ++key) {
    meter.begin(key % 1000 + 1, 0, 0);
    meter.end(0, 1, kExists);
  }
  over = true;
  reader.join();
}

TEST(MoreWork, IsTheDifferenceByType) {
  const std::vector<atl::TypeWork> before{{1, 5, 1}, {3, 5, 1}, {4, 5, 1}};
  const std::vector<atl::TypeWork> now{{1, 7, 2}, {2, 1, 1}, {4, 5, 1}};
  const auto more = atl::runtime::more_work(before, now);
  ASSERT_EQ(more.size(), 2U);
  EXPECT_EQ(more[0].type, 1U);
  EXPECT_EQ(more[0].units, 2);
  EXPECT_EQ(more[0].busy_s, 1);
  EXPECT_EQ(more[1].type, 2U);
  EXPECT_EQ(more[1].units, 1);
}

// Keeps what it is asked.
class Recording : public atl::Approach {
 public:
  std::string name() const override { return "recording"; }
  std::vector<Sample> samples() const {
    const std::lock_guard lock(mutex_);
    return samples_;
  }

 protected:
  atl::Decision decide(const Sample& sample) override {
    const std::lock_guard lock(mutex_);
    samples_.push_back(sample);
    return {sample.spread, "stays"};
  }

 private:
  mutable std::mutex mutex_;
  std::vector<Sample> samples_;
};

double units_of(const std::vector<Sample>& samples) {
  double units = 0;
  for (const Sample& sample : samples) {
    for (const atl::TypeWork& entry : sample.work) units += entry.units;
  }
  return units;
}

atl::RuntimeOptions every(std::chrono::milliseconds interval) {
  atl::RuntimeOptions options = with_workers(4);
  options.interval = interval;
  return options;
}

void work() {
  atl::fork([] {}).join();
}

bool works_until(atl::Runtime& runtime, auto&& condition) {
  return soon([&] {
    for (int times = 0; times < 100; ++times) runtime.run(work);
    return condition();
  });
}

// Its number in words is the old one's.
TEST(Governor, ANewGroupInheritsNoWork) {
  atl::Runtime runtime(every(std::chrono::milliseconds(1)));
  double done = 0;
  {
    auto first = std::make_shared<Recording>();
    atl::Group group(runtime, {.threads = 2, .own_approach = first});
    EXPECT_TRUE(soon([&] {
      for (int times = 0; times < 1000; ++times) group.run(work);
      done += 1000;
      return !first->samples().empty();
    }));
  }
  auto second = std::make_shared<Recording>();
  atl::Group group(runtime, {.threads = 2, .own_approach = second});
  double runs = 0;
  EXPECT_TRUE(soon([&] {
    group.run(work);
    ++runs;
    return !second->samples().empty();
  }));
  // A run is a task with a fork, or, if that is stolen, two tasks and the rest of the first.
  EXPECT_LE(units_of(second->samples()), 3 * runs) << "of " << done << " before";
}

TEST(Governor, NoApproachIsAskedWithinItsInterval) {
  atl::Runtime runtime(every(std::chrono::hours(1)));
  auto approach = std::make_shared<Recording>();
  atl::Group group(runtime, {.threads = 2, .own_approach = approach});
  for (int times = 0; times < 200; ++times) {
    group.run(work);
    const atl::Group other(runtime, {.threads = 2});
    group.run(work);
    runtime.look();
  }
  EXPECT_TRUE(approach->samples().empty());
}

TEST(Governor, ATaskLongerThanManyIntervalsIsSeen) {
  atl::Runtime runtime(every(std::chrono::milliseconds(1)));
  auto approach = std::make_shared<Recording>();
  atl::Group group(runtime, {.threads = 2, .own_approach = approach});
  bool seen = false;
  group.run([&] { seen = soon([&] { return approach->samples().size() >= 3; }); });
  EXPECT_TRUE(seen);
  for (const Sample& sample : approach->samples()) {
    ASSERT_FALSE(sample.work.empty());
    EXPECT_GT(sample.work.front().busy_s, 0);
  }
}

TEST(Governor, FillsAreThoseOfTheTimeOfTheWork) {
  atl::RuntimeOptions options = every(std::chrono::milliseconds(1));
  std::atomic<std::uint64_t> fills{0};
  options.fills = [&](int) { return atl::Fills{.memory = fills.load()}; };
  atl::Runtime runtime(options);
  auto approach = std::make_shared<Recording>();
  atl::Group group(runtime, {.threads = 2, .own_approach = approach});
  // The counts rise only while the one task runs: nothing of them may be lost.
  group.run([&] {
    EXPECT_TRUE(soon([&] { return !approach->samples().empty(); }));
    fills += 1000;
    const std::size_t before = approach->samples().size();
    EXPECT_TRUE(soon([&] { return approach->samples().size() > before + 1; }));
  });
  std::uint64_t sum = 0;
  for (const Sample& sample : approach->samples()) sum += sample.fills.memory.value_or(0);
  EXPECT_EQ(sum, 2000U) << "by two workers";
}

// 4 chiplets of 2 cores: spread 2 is cores 0 and 2 for our mapping.
TEST(Governor, ArcasAsPrintedAlsoMapsAsPrinted) {
  std::atomic<std::uint64_t> fills{0};
  for (const auto& [name, second] :
       {std::pair("arcas-2025:10", 2), std::pair("arcas-2025-printed:10", 4)}) {
    atl::RuntimeOptions options = with_workers(2);
    options.interval = std::chrono::milliseconds(1);
    options.approach = name;
    options.fills = [&](int) { return atl::Fills{.remote_chiplet = fills += 1000}; };
    atl::Runtime runtime(options);
    EXPECT_TRUE(works_until(runtime, [&] { return runtime.spread() == 2; }));
    EXPECT_EQ(runtime.cores(), (std::vector<int>{0, second})) << name;
  }
}

TEST(Governor, AStaticGroupBeginsWhereItStays) {
  atl::Runtime runtime(every(std::chrono::hours(1)));
  EXPECT_EQ(atl::Group(runtime, {.threads = 2, .approach = "static-distributed"}).spread(), 2);
  EXPECT_EQ(atl::Group(runtime, {.threads = 2, .approach = "static:2"}).spread(), 2);
  EXPECT_EQ(atl::Group(runtime, {.threads = 2, .approach = "static-local"}).spread(), 1);
  EXPECT_EQ(atl::Group(runtime, {.threads = 2}).spread(), 1);
}

// 4 chiplets of 2 cores with an L3 of 1 MiB each; two threads fit on one chiplet.
atl::RuntimeOptions by_cache_size() {
  atl::RuntimeOptions options = every(std::chrono::milliseconds(1));
  options.workers = 2;
  options.places->chiplet_l3_bytes = 1 << 20;
  options.approach = "cache-size-centric";
  return options;
}

TEST(Governor, AWorkingSetThatNobodyGaveIsMeasured) {
  atl::RuntimeOptions options = by_cache_size();
  // A half of what the cores load is in the one L3: the set is twice as large.
  std::atomic<std::uint64_t> loaded{0};
  options.fills = [&](int) {
    const std::uint64_t now = loaded += 100'000;
    return atl::Fills{.local_chiplet = now, .memory = now};
  };
  atl::Runtime runtime(options);
  EXPECT_TRUE(works_until(runtime, [&] { return runtime.spread() == 2; }));
  EXPECT_NE(runtime.reason().find("(fills)"), std::string::npos) << runtime.reason();
  const atl::Profile profile = runtime.profile();
  EXPECT_EQ(profile.working_set_source, "fills");
  EXPECT_GE(profile.working_set_bytes, 2U << 20);
}

TEST(Governor, AWorkingSetThatIsGivenIsNotMeasured) {
  atl::RuntimeOptions options = by_cache_size();
  options.working_set_bytes = 1000;
  options.fills = [](int) { return atl::Fills{.local_chiplet = 1, .memory = 1'000'000'000}; };
  atl::Runtime runtime(options);
  EXPECT_TRUE(
      works_until(runtime, [&] { return runtime.reason().find("(given)") != std::string::npos; }));
  EXPECT_EQ(runtime.spread(), 1);
  const atl::Profile profile = runtime.profile();
  EXPECT_EQ(profile.working_set_source, "given");
  EXPECT_EQ(profile.working_set_bytes, 1000U);
}

TEST(Governor, WithoutCountsTheWorkingSetIsUnknownAndARemarkSaysSo) {
  atl::RuntimeOptions options = by_cache_size();
  options.fills = [](int) { return atl::Fills{.memory = 1}; };
  atl::Runtime runtime(options);
  EXPECT_TRUE(works_until(runtime,
                          [&] { return runtime.reason().find("not known") != std::string::npos; }));
  const atl::Profile profile = runtime.profile();
  EXPECT_EQ(profile.working_set_source, "");
  EXPECT_EQ(profile.working_set_bytes, std::nullopt);
  EXPECT_TRUE(std::ranges::any_of(profile.remarks, [](const std::string& remark) {
    return remark.starts_with("working set: n/a (");
  }));
}

// What the governor tells of one run of a group's tasks.
class Watched : public atl::runtime::Steered {
 public:
  explicit Watched(std::uint64_t of) : Steered(std::make_shared<Recording>()) {
    tag = of;
    threads = 2;
    wants_run = true;
  }
  atl::runtime::SpreadBounds limits() override { return {1, 2}; }
  void seat(int) override {}
  std::span<const int> workers() const override { return {}; }
  void ended(const atl::runtime::Run& of, const atl::runtime::RunBounds&) override { run = of; }
  atl::runtime::Run run;
};

// What this domain's tasks took so far, and those of all others.
struct TimeTaken {
  double own_s = 0;
  double others_s = 0;
};
TimeTaken time_taken(atl::Runtime& runtime, std::uint64_t tag) {
  TimeTaken taken;
  for (int rank = 0; rank < runtime.workers(); ++rank) {
    for (const auto& [key, sum] :
         sums_of(runtime.team().worker(rank).meter(), atl::runtime::now_ns())) {
      (atl::detail::tag_of(key) == tag ? taken.own_s : taken.others_s) +=
          static_cast<double>(sum.busy_ns) * 1e-9;
    }
  }
  return taken;
}

TEST(Governor, OnlyARunAloneShowsHowGoodItsSpreadWas) {
  const auto spin = [] {
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(20);
    while (std::chrono::steady_clock::now() < until) std::this_thread::yield();
  };
  // Beside it `others` run, too, until they have taken as much, however long it was delayed.
  const auto comparable = [&](const std::function<void(atl::Runtime&)>& others) {
    atl::Runtime runtime(every(std::chrono::hours(1)));
    atl::Group group(runtime, {.threads = 2});
    const std::uint64_t tag = group.run([] { return atl::detail::this_worker()->tag; });
    Watched watched(tag);
    runtime.team().governor().add(watched);
    group.run(spin);
    for (TimeTaken all; others && all.others_s <= all.own_s; all = time_taken(runtime, tag)) {
      others(runtime);
    }
    runtime.team().governor().remove(watched);
    EXPECT_GT(watched.run.busy_s, 0);
    return watched.run.comparable;
  };
  EXPECT_TRUE(comparable(nullptr));
  EXPECT_FALSE(comparable([&](atl::Runtime& runtime) { runtime.spawn(spin).join(); }));
  EXPECT_FALSE(comparable([&](atl::Runtime& runtime) {
    atl::Group other(runtime, {.threads = 2});
    other.run(spin);
  }));
}

}  // namespace
