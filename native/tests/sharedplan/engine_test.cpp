// The whole plan: every answer against the simple evaluator, on threads and on the runtime.
#include "engine.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "browsers.hpp"
#include "evaluate.hpp"
#include "flags.hpp"
#include "report.hpp"

namespace atl::sharedplan {
namespace {

constexpr double kScale = 2e-4;

const Places& here() {
  static const Places places = places_here();
  return places;
}

// Operators in turn on `cores` of this machine's cores, or on all if it has fewer.
Placement placed_on(std::size_t cores) {
  Placement made{"packed", {}, {}};
  for (std::size_t at = 0; at < std::min(cores, here().cores.size()); ++at) {
    made.cpus.push_back(here().cores[at].cpus.front());
  }
  for (std::size_t at = 0; at < plan().size(); ++at) {
    made.cpu_of.push_back(made.cpus[at % made.cpus.size()]);
  }
  return made;
}

std::vector<Placement> placements() { return {{}, placed_on(1), placed_on(2)}; }

TEST(Engine, AnswersEveryQueryOfACycle) {
  for (const Placement& placement : placements()) {
    Engine engine(kScale, 3, placement, here());
    for (const std::size_t count : {std::size_t{1}, std::size_t{14}, kMostQueries}) {
      std::vector<std::shared_ptr<Query>> queries;
      for (std::size_t at = 0; at < count; ++at) {
        queries.push_back(std::make_shared<Query>(
            at % interactions().size(), draw_parameters(engine.tables(), mixed(count, at))));
      }
      engine.run(queries);
      for (const auto& query : queries) EXPECT_NO_THROW(verify(engine.tables(), *query));
    }
  }
}

TEST(Engine, VerifierFindsAWrongAnswer) {
  Engine engine(kScale, 3, {}, here());
  const auto query = std::make_shared<Query>(std::size_t{3}, draw_parameters(engine.tables(), 1));
  engine.run({query});
  ASSERT_NO_THROW(verify(engine.tables(), *query));
  ++query->answers[static_cast<std::size_t>(Statement::kDetail)].at(2);
  EXPECT_THROW(verify(engine.tables(), *query), kernels::WrongAnswer);
}

TEST(Browsers, CycleInAClosedLoop) {
  for (const Placement& placement : placements()) {
    Engine engine(kScale, 5, placement, here());
    Stretch stretch;
    {
      Browsers browsers(engine, {30, std::chrono::milliseconds(1), 1}, {});
      // However slow the machine is: 20 cycles and a whole window.
      for (std::chrono::milliseconds time{1100}; stretch.answers.cycles < 20; time *= 2) {
        stretch = watch(engine, browsers, time, [] { return false; });
      }
    }
    ASSERT_GE(stretch.answers.samples.size(), 5U);  // verified by `watch`
    const auto found = throughput(stretch, here());
    EXPECT_EQ(found["per_window"].size(), static_cast<std::size_t>(found["seconds"].get<double>()));
    EXPECT_EQ(found["interactions"], stretch.answers.all.size());
    EXPECT_LE(found["p50_ms"].get<double>(), found["p99_ms"].get<double>());
    const std::size_t most = placement.cpus.empty() ? here().cores.size() : placement.cpus.size();
    EXPECT_LE(found["cores"].size(), most);
    for (const auto& each : found["cores"]) {
      if (placement.cpus.empty()) break;
      EXPECT_NE(std::count(placement.cpus.begin(), placement.cpus.end(), each.get<int>()), 0);
    }
    const auto made = graph(engine, stretch);
    EXPECT_EQ(made["operators"].size(), 44U);
    std::size_t operators = 0;
    const auto all = threads(engine);
    for (const auto& each : all) operators += each["operators"].size();
    EXPECT_EQ(operators, 44U);
    EXPECT_EQ(all.size(), placement.cpu_of.empty() ? 44U : placement.cpus.size());
  }
}

TEST(Browsers, StopWhileTheyThink) {
  Engine engine(kScale, 5, {}, here());
  Browsers browsers(engine, {10, std::chrono::hours(1), 1}, {});
  bool stop = false;
  std::size_t calls = 0;
  const Stretch stretch = watch(engine, browsers, std::chrono::hours(1), [&] {
    stop = ++calls > 2;
    return stop;
  });
  EXPECT_LE(stretch.answers.all.size(), 10U);
}

TEST(Meter, SharesTimeAmongWindows) {
  using std::chrono::milliseconds;
  Meter meter;
  Usage more;
  more.out_bytes = 5;
  more.own_bytes = 9;
  meter.add(milliseconds(150), milliseconds(350), 0.1, 2, more);
  more.own_bytes = 3;
  meter.add(milliseconds(399), milliseconds(400), 0.001, 0, more);
  meter.add(milliseconds(400), milliseconds(400), 0.002, 0, more);
  const Usage usage = meter.take();
  ASSERT_EQ(usage.cpu_s_by_window.size(), 4U);
  EXPECT_DOUBLE_EQ(usage.cpu_s_by_window.at(1), 0.025);
  EXPECT_DOUBLE_EQ(usage.cpu_s_by_window.at(2), 0.05);
  EXPECT_DOUBLE_EQ(usage.cpu_s_by_window.at(3), 0.026);
  EXPECT_DOUBLE_EQ(usage.cpu_s_by_window.at(4), 0.002);
  EXPECT_EQ(usage.cpu_s_by_cpu, (std::map<int, double>{{0, 0.003}, {2, 0.1}}));
  EXPECT_EQ(usage.out_bytes, 15U);
  EXPECT_EQ(usage.own_bytes, 9U);
  EXPECT_TRUE(meter.take().cpu_s_by_cpu.empty());
}

}  // namespace
}  // namespace atl::sharedplan
