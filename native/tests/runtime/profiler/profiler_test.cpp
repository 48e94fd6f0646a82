// Counters and code sections of a worker; the profiler around them.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <set>
#include <thread>

#include "atoll/runtime/places.hpp"
#include "atoll/runtime/runtime.hpp"
#include "atoll/runtime/task.hpp"
#include "atoll/runtime/this_task.hpp"
#include "parts.hpp"
#include "profiler/events/amd.hpp"
#include "runtime/parts.hpp"

namespace atl::runtime {
namespace {

const SectionProfile* find(const std::vector<SectionProfile>& sections, std::string_view name) {
  for (const SectionProfile& section : sections) {
    if (section.name == name) return &section;
  }
  return nullptr;
}

TEST(Counts, EveryCounterIsListedOnce) {
  Counts counts;
  std::uint64_t value = 0;
  std::set<std::string> names;
  for_each_count(
      [&](const char* name, std::uint64_t& count) {
        EXPECT_EQ(count, 0U) << name << " was listed before";
        count = ++value;
        EXPECT_TRUE(names.insert(name).second) << name;
      },
      counts);
  EXPECT_EQ(sizeof(Counts), value * sizeof(std::uint64_t)) << "a counter is not listed";
}

TEST(Recorder, HooksCount) {
  OneWorker one;
  one.recorder.job_begin(false);
  one.recorder.job_end();
  one.recorder.job_begin(true);
  one.recorder.job_end();
  one.recorder.stole(1, Distance::chiplet);
  one.recorder.stole(1, Distance::node);
  one.recorder.stole(2, Distance::node);
  one.recorder.found_nothing();
  one.recorder.parking();
  one.recorder.unparked();
  one.recorder.woke(1);
  one.recorder.migrated_from(1);
  one.recorder.switched();
  one.recorder.switched();
  one.recorder.yielded();
  one.recorder.moved_to(3);
  const Counts counts = one.profiler.snapshot().workers[0].counts;
  EXPECT_EQ(counts.tasks, 1U);
  EXPECT_EQ(counts.steals, (std::array<std::uint64_t, kDistances>{1, 0, 2, 0}));
  EXPECT_EQ(counts.failed_rounds, 1U);
  EXPECT_EQ(counts.parks, 1U);
  EXPECT_EQ(counts.wakes, 1U);
  EXPECT_EQ(counts.migrations, 1U);
  EXPECT_EQ(counts.switches, 2U);
  EXPECT_EQ(counts.yields, 1U);
  EXPECT_EQ(counts.moves, 1U);
}

TEST(Section, BooksWhatHappensInIt) {
  OneWorker one;
  one.recorder.yielded();  // before
  for (int i = 0; i < 3; ++i) {
    const Section section("books: a");
    one.recorder.yielded();
    one.counts.inline_forks.add(2);
  }
  one.recorder.yielded();  // after
  const auto sections = one.sections();
  const SectionProfile* a = find(sections, "books: a");
  ASSERT_NE(a, nullptr);
  EXPECT_EQ(a->entered, 3U);
  EXPECT_EQ(a->counts.yields, 3U);
  EXPECT_EQ(a->counts.inline_forks, 6U);
  EXPECT_EQ(a->counts.tasks, 0U);
  EXPECT_GT(a->seconds, 0);
}

TEST(Section, WhatIsNestedCountsOnce) {
  OneWorker one;
  {
    const Section outer("nested: outer");
    one.recorder.yielded();
    {
      const Section inner("nested: inner");
      one.counts.yields.add(10);
      const Section again("nested: outer");  // recursion: a section within itself
      one.counts.yields.add(100);
    }
    one.recorder.yielded();
  }
  const auto sections = one.sections();
  EXPECT_EQ(find(sections, "nested: outer")->counts.yields, 102U);
  EXPECT_EQ(find(sections, "nested: inner")->counts.yields, 10U);
  EXPECT_EQ(find(sections, "nested: outer")->entered, 2U);
}

TEST(Section, GoesOnWhereItsTaskGoesOn) {
  std::array<WorkerCounts, 2> counts;
  Profiler profiler(std::vector<WorkerCounts*>{&counts[0], &counts[1]}, {});
  profiler.attach(0);
  const std::array recorders = {&profiler.recorder(0), &profiler.recorder(1)};
  {
    const Section outer("moves: outer");
    recorders[0]->yielded();
    const Section inner("moves: inner");
    recorders[0]->yielded();
    Section* suspended = recorders[0]->section_suspended();
    ASSERT_NE(suspended, nullptr);
    EXPECT_EQ(recorders[0]->section_suspended(), nullptr);  // the next task here has none
    counts[0].yields.add(1000);                             // what others do meanwhile
    counts[1].yields.add(1000);
    Recorder::set_current(recorders[1]);
    recorders[1]->section_resumed(suspended);
    recorders[1]->switched();
  }
  counts[1].switches.add(1000);
  const Profile profile = profiler.snapshot();
  const auto& first = profile.workers[0].sections;
  const auto& second = profile.workers[1].sections;
  EXPECT_EQ(find(first, "moves: outer")->counts.yields, 1U);
  EXPECT_EQ(find(first, "moves: inner")->counts.yields, 1U);
  EXPECT_EQ(find(second, "moves: inner")->counts.switches, 1U);
  EXPECT_EQ(find(second, "moves: outer")->counts.switches, 0U);  // gone back to, then ended
  EXPECT_EQ(find(second, "moves: inner")->entered, 0U);
  Recorder::set_current(recorders[0]);
  profiler.detach(0);

  const auto totals = section_totals(profile);
  EXPECT_EQ(find(totals, "moves: inner")->counts.switches, 1U);
  EXPECT_EQ(find(totals, "moves: inner")->counts.yields, 1U);
  EXPECT_EQ(find(totals, "moves: inner")->entered, 1U);
}

// Counters that go up by known steps with each reading.
struct FakeCounters final : CounterReader {
  [[nodiscard]] std::optional<FillReading> read() const override {
    ++readings;
    if (broken) return std::nullopt;
    FillReading now;
    now[0].enabled_ns = readings * 1000;
    now[0].running_ns = readings * 500;
    now[0].values = {readings * 8, readings * 4, 0, readings, readings * 2};
    return now;
  }
  mutable std::uint64_t readings = 0;
  bool broken = false;
};

TEST(Section, FillsOfASpanAreBookedToItsSection) {
  OneWorker one;
  FakeCounters counters;
  one.recorder.set_fills(&counters, &kZen4);
  {
    const Section section("fills: counted");  // the first span is always counted
  }
  EXPECT_EQ(counters.readings, 2U);  // at its begin and its end
  one.recorder.set_fills(nullptr, nullptr);
  {
    const Section section("fills: counted");  // these are not
    const Section other("fills: not counted");
  }
  EXPECT_EQ(counters.readings, 2U);
  const SectionBook& book = *one.recorder.book(section_id("fills: counted"));
  EXPECT_EQ(book.entered.read(), 2U);
  EXPECT_GT(book.fills_ns.read(), 0U);
  EXPECT_LT(book.fills_ns.read(), book.ns.read());
  const auto booked = [&](FillSource source) {
    return book.fills[static_cast<std::size_t>(source)].read();
  };
  EXPECT_EQ(booked(FillSource::local_chiplet), 16U);  // a step of 8, counted half of the time
  EXPECT_EQ(booked(FillSource::remote_chiplet), 8U);
  EXPECT_EQ(booked(FillSource::memory_local), 2U);
  EXPECT_EQ(booked(FillSource::memory_remote), 4U);
  EXPECT_EQ(book.fills_share.load(), 0.5);
  EXPECT_NE(book.fills_missing.load(), 0);  // node_cache, which Zen 4 has no event for
  EXPECT_EQ(one.recorder.book(section_id("fills: not counted"))->fills_ns.read(), 0U);
}

TEST(Recorder, FillsOfATaskAreBookedToItsType) {
  OneWorker one;
  FakeCounters counters;
  const auto run = [&](std::uintptr_t type) {
    one.recorder.type_begins(type, now_ns());
    one.recorder.type_ends(now_ns());
  };
  run(100);  // nothing is counted yet
  one.recorder.set_fills(&counters, &kZen4);
  run(100);  // the first span is always counted
  run(200);  // too soon
  EXPECT_EQ(counters.readings, 2U);
  const auto& books = one.recorder.type_books();
  EXPECT_EQ(books[0].type.load(), 100U);
  EXPECT_EQ(books[0].fills[static_cast<std::size_t>(FillSource::local_chiplet)].read(), 16U);
  EXPECT_EQ(books[0].fills_share.load(), 0.5);
  EXPECT_EQ(books[1].type.load(), TypeBook::kNoType);
  one.recorder.set_fills(nullptr, nullptr);
}

TEST(Recorder, TypesThatAreTooManyShareABook) {
  OneWorker one;
  FakeCounters counters;
  const std::size_t last = one.recorder.type_books().size() - 1;
  for (std::size_t type = 0; type < last + 3; ++type) {
    one.recorder.set_fills(&counters, &kZen4);
    // A clock that is far ahead makes every span due.
    const std::int64_t now = now_ns() + static_cast<std::int64_t>(type + 1) * 1'000'000'000;
    one.recorder.type_begins(100 + type, now);
    one.recorder.type_ends(now + 10);
  }
  one.recorder.set_fills(nullptr, nullptr);
  const auto& books = one.recorder.type_books();
  EXPECT_EQ(books[last - 1].type.load(), 100 + last - 1);
  EXPECT_EQ(books[last].type.load(), kOtherTypes);
  EXPECT_EQ(books[last].fills_ns.read(), 30U);
}

TEST(Section, CountersThatCannotBeReadLeaveNoFills) {
  OneWorker one;
  FakeCounters counters;
  counters.broken = true;
  one.recorder.set_fills(&counters, &kZen4);
  {
    const Section section("fills: broken");
    one.recorder.yielded();
  }
  one.recorder.set_fills(nullptr, nullptr);
  const SectionBook& book = *one.recorder.book(section_id("fills: broken"));
  EXPECT_EQ(book.fills_ns.read(), 0U);
  EXPECT_EQ(book.counts.yields.read(), 1U);
}

TEST(Section, OutsideOfAWorkerItDoesNothing) {
  ASSERT_EQ(Recorder::current(), nullptr);
  const Section section("outside");
  EXPECT_EQ(section.outer(), nullptr);
}

TEST(Section, NamesAreNumberedOnce) {
  const int id = section_id("numbered");
  EXPECT_EQ(section_id(std::string("numb") + "ered"), id);
  EXPECT_EQ(section_name(id), "numbered");
  EXPECT_EQ(section_name(kOtherSections), "(others)");
}

TEST(Profiler, WithoutATraceThereIsNoneToWrite) {
  OneWorker one;
  EXPECT_THROW(one.profiler.write_trace(testing::TempDir() + "/none.json"), RuntimeFault);
}

TEST(Profiler, EveryUnknownHasARemark) {
  OneWorker one;
  const Profile profile = one.profiler.snapshot();
  std::string remarks;
  for (const std::string& remark : profile.remarks) remarks += remark + "\n";
  const bool fills = profile.workers[0].fills != FillCounts{};
  EXPECT_EQ(fills, remarks.find("fills: n/a (") == std::string::npos) << remarks;
  EXPECT_EQ(profile.l3.empty(), remarks.find("l3: n/a (") != std::string::npos) << remarks;
  EXPECT_EQ(fills, !profile.cpu.empty());
}

TEST(Profiler, KeepsWhatAWorkerThatLeftHadCounted) {
  OneWorker one;
  one.recorder.yielded();
  one.profiler.sample();
  one.profiler.detach(0);
  EXPECT_EQ(Recorder::current(), nullptr);
  const WorkerProfile worker = one.profiler.snapshot().workers[0];
  EXPECT_EQ(worker.counts.yields, 1U);
  EXPECT_EQ(worker.tid, gettid());
  EXPECT_TRUE(worker.usage.minor_faults);
}

TEST(Profiler, IsReadWhileWorkersWork) {
  constexpr int kWorkers = 2;
  constexpr int kRounds = 3000;
  std::array<WorkerCounts, kWorkers> counts;
  Profiler profiler(std::vector<WorkerCounts*>{&counts[0], &counts[1]}, {.trace_events = 100});
  std::vector<std::thread> threads;
  for (int w = 0; w < kWorkers; ++w) {
    threads.emplace_back([&, w] {
      profiler.attach(w);
      Recorder& recorder = profiler.recorder(w);
      for (int i = 0; i < kRounds; ++i) {
        recorder.job_begin(false);
        const Section section("read while working");
        recorder.yielded();
        recorder.job_end();
      }
      profiler.detach(w);
    });
  }
  std::uint64_t before = 0;
  for (int i = 0; i < 20; ++i) {
    profiler.sample();
    const Profile profile = profiler.snapshot();
    const std::uint64_t now = profile.workers[0].counts.yields;
    EXPECT_GE(now, before);
    before = now;
    EXPECT_FALSE(trace_of(profiler).empty());
  }
  for (std::thread& thread : threads) thread.join();
  const auto totals = section_totals(profiler.snapshot());
  EXPECT_EQ(find(totals, "read while working")->counts.yields, std::uint64_t{kWorkers} * kRounds);
}

TEST(Profiler, AWakeIsCountedByTheWorkerThatSpawned) {
  using Clock = std::chrono::steady_clock;
  RuntimeOptions options;
  options.workers = 2;
  options.places = synthetic_places("core:2", test::real_cpus());
  Runtime runtime(options);
  runtime.run([&runtime] {
    const auto deadline = Clock::now() + std::chrono::seconds(60);
    std::uint64_t woken = 0;
    std::uint64_t parked = 0;
    // Once is not enough: the other may be caught between its last look and its sleep, not parked.
    while ((woken == 0 || parked == 0) && Clock::now() < deadline) {
      // Of the thread, not of the task: the other worker finds nothing meanwhile, and parks.
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      const auto here = static_cast<std::size_t>(this_task::worker());
      const std::uint64_t before = runtime.counts()[here].wakes;
      std::atomic<bool> begun{false};
      auto child = spawn([&begun] { begun = true; });
      while (!begun && Clock::now() < deadline) std::this_thread::yield();
      woken = runtime.counts()[here].wakes - before;
      parked = runtime.counts()[1 - here].parks;
      child.join();
    }
    EXPECT_EQ(woken, 1U);
    EXPECT_GT(parked, 0U);
  });
}

TEST(ControllerFills, AreDifferences) {
  FillCounts before;
  before.of(FillSource::local_chiplet) = 10;
  before.of(FillSource::memory_local) = 5;
  before.of(FillSource::memory_remote) = 5;
  FillCounts now = before;
  now.of(FillSource::local_chiplet) = 25;
  now.of(FillSource::memory_local) = 6;
  now.of(FillSource::memory_remote) = 4;  // an estimate that fell
  const Fills fills = controller_fills(before, now);
  EXPECT_EQ(fills.local_chiplet, 15U);
  EXPECT_EQ(fills.memory, 1U);
  EXPECT_EQ(fills.remote_chiplet, std::nullopt);
  EXPECT_EQ(controller_fills({}, now).memory, 10U);
  now.of(FillSource::memory_remote).reset();
  EXPECT_EQ(controller_fills(before, now).memory, std::nullopt);
}

}  // namespace
}  // namespace atl::runtime
