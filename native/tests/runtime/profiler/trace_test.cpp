// The ring of a worker's trace, and the trace as JSON.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "parts.hpp"

namespace atl::runtime {
namespace {

TEST(TraceRing, KeepsTheLatestAndCountsTheRest) {
  TraceRing ring(6);
  std::uint64_t lost = 1;
  EXPECT_TRUE(ring.copy(lost).empty());
  EXPECT_EQ(lost, 0U);
  for (std::uint64_t i = 0; i < 100; ++i) {
    ring.put(TraceKind::wake, i, static_cast<std::int64_t>(i * 10));
  }
  const auto events = ring.copy(lost);
  ASSERT_GE(events.size(), 6U);
  EXPECT_EQ(lost + events.size(), 100U);
  EXPECT_EQ(ring.lost(), lost);
  EXPECT_EQ(events.back(), (TraceEvent{990, TraceKind::wake, 99}));
  EXPECT_EQ(events.front().value, lost);
}

TEST(TraceRing, WhatIsReadWhileItIsWrittenIsWhole) {
  TraceRing ring(64);
  std::thread writer([&] {
    for (std::uint64_t i = 0; i < 50'000; ++i) {
      ring.put(TraceKind::steal, i * 3, static_cast<std::int64_t>(i));
    }
  });
  std::uint64_t lost = 0;
  for (int round = 0; round < 200; ++round) {
    std::uint64_t expected = 0;
    const auto events = ring.copy(expected);
    ASSERT_GE(expected, lost);
    lost = expected;
    for (const TraceEvent& event : events) {
      ASSERT_EQ(event.at_ns, static_cast<std::int64_t>(expected));
      ASSERT_EQ(event.value, expected * 3);
      ++expected;
    }
  }
  writer.join();
}

TEST(Trace, SlicesAreNestedAndClosed) {
  OneWorker one(100);
  one.recorder.unparked();  // its beginning is not in the trace
  one.recorder.job_begin(false);
  {
    const Section section("trace \"quoted\"\n");
    one.recorder.stole(5, Distance::near);
    Section* suspended = one.recorder.section_suspended();
    one.recorder.job_end();
    one.recorder.job_begin(true);
    one.recorder.section_resumed(suspended);
  }
  one.recorder.job_end();
  one.recorder.migrated_from(7);
  one.recorder.parking();  // and stays
  std::vector<std::string> slices;
  int flows = 0;
  double last = 0;
  for (const auto& event : trace_of(one.profiler)) {
    const std::string phase = event.at("ph");
    if (phase == "M") continue;
    EXPECT_GE(event.at("ts").get<double>(), last);
    last = event.at("ts");
    if (phase == "B") slices.push_back(event.at("name"));
    if (phase == "E") slices.emplace_back("end");
    if (phase == "s") {
      EXPECT_EQ(event.at("tid"), 5);
    }
    if (phase == "s" || phase == "f") ++flows;
    if (event.value("name", "") == "steal: near") {
      EXPECT_EQ(event.at("args").at("victim"), 5);
    }
  }
  EXPECT_EQ(slices,
            (std::vector<std::string>{"task", "trace \"quoted\"\n", "end", "end", "resumed task",
                                      "trace \"quoted\"\n", "end", "end", "parked", "end"}));
  EXPECT_EQ(flows, 2);
}

TEST(Trace, CountersAreRates) {
  std::string text;
  JsonWriter json([&](std::string_view part) { text += part; });
  CounterSample first{.at_ns = 1'000'000'000, .worker = 2, .counts = {}, .fills = {}};
  first.fills.of(FillSource::memory_local) = 100;
  first.fills.running_share = 1;
  CounterSample second = first;
  second.at_ns = 1'500'000'000;
  second.counts.tasks = 50;
  second.counts.steals[0] = 4;
  second.fills.of(FillSource::memory_local) = 1100;
  write_trace_json(json, 1, {}, {first, second});
  const auto events = nlohmann::json::parse(text).at("traceEvents");
  ASSERT_EQ(events.size(), 3U);
  EXPECT_EQ(events[0].at("args").at("tasks"), 100.0);
  EXPECT_EQ(events[1].at("args").at("chiplet"), 8.0);
  EXPECT_EQ(events[2].at("args"), nlohmann::json({{"memory_local", 2000.0}}));
  EXPECT_EQ(events[2].at("name"), "worker 2 fills per s");
}

TEST(Trace, LostEventsAreTold) {
  OneWorker one(8);
  for (int i = 0; i < 100; ++i) one.recorder.woke(0);
  EXPECT_GT(one.profiler.snapshot().workers[0].lost_trace_events, 80U);
  EXPECT_NE(trace_of(one.profiler).dump().find("events lost before this"), std::string::npos);
}

}  // namespace
}  // namespace atl::runtime
