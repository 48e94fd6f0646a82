// Fills that simulated caches count, by worker: from a board in a file.
#include "profiler/board_fills.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "runtime/board_file.hpp"
#include "runtime/parts.hpp"
#include "scheduler/decided.hpp"
#include "scheduler/team.hpp"

namespace atl::runtime {
namespace {

using test::BoardFile;

constexpr FillSource kAll[] = {FillSource::local_chiplet, FillSource::remote_chiplet,
                               FillSource::remote_node, FillSource::memory_local,
                               FillSource::memory_remote};

// Two cores on CPUs of one chiplet.
Places two_cores(int one, int other) {
  return {.cores = {{{one}, 0, 0, 0}, {{other}, 0, 0, 0}}, .chiplet_levels = {{0}}};
}

std::unique_ptr<BoardFills> counted(const BoardFile& board, int workers) {
  return BoardFills::find(board.devices(), two_cores(0, 1), workers);
}

// Since the beginning, in the order of kAll; empty while it is not bound.
std::vector<std::uint64_t> fills(const BoardFills& board, int worker) {
  const std::optional<FillReading> now = board.of(worker).read();
  if (!now) return {};
  const FillCounts counts = fills_between(BoardFills::table(), {}, *now);
  EXPECT_EQ(counts.running_share, 1);
  std::vector<std::uint64_t> lines;
  for (const FillSource source : kAll) lines.push_back(counts.of(source).value());
  return lines;
}

using Lines = std::vector<std::uint64_t>;

TEST(BoardFills, AWorkerHasThoseOfItsCpuBySource) {
  BoardFile board;
  const auto reader = counted(board, 2);
  board.from_chiplet(2, 1, 1000);  // before it came there
  reader->seat(std::vector<Seat>{{0, {2}}, {0, {3}}});
  board.from_chiplet(2, 1, 1);
  board.from_chiplet(2, 0, 2);
  board.from_chiplet(2, 2, 3);
  board.from_memory(2, 0, 4);
  board.from_memory(2, 1, 5);
  board.from_memory(3, 1, 6);
  board.from_memory(0, 0, 99);  // nobody's
  EXPECT_EQ(fills(*reader, 0), (Lines{1, 2, 3, 4, 5}));
  EXPECT_EQ(fills(*reader, 1), (Lines{0, 0, 0, 6, 0}));
}

TEST(BoardFills, WhatWasCountedBeforeAMoveStaysWithTheWorker) {
  BoardFile board;
  const auto reader = counted(board, 2);
  reader->seat(std::vector<Seat>{{0, {0}}, {0, {3}}});
  board.from_memory(0, 0, 10);
  board.from_memory(3, 0, 20);
  reader->seat(std::vector<Seat>{{0, {3}}, {0, {0}}});  // they change places
  EXPECT_EQ(fills(*reader, 0), (Lines{0, 0, 0, 10, 0}));
  board.from_memory(0, 0, 1);
  board.from_memory(3, 0, 2);
  EXPECT_EQ(fills(*reader, 0), (Lines{0, 0, 0, 10, 2}));
  EXPECT_EQ(fills(*reader, 1), (Lines{0, 0, 0, 1, 20}));
}

TEST(BoardFills, WorkersOfTheSameCpusHaveEqualParts) {
  BoardFile board;
  const auto reader = counted(board, 3);
  const std::vector<int> both = {0, 1};
  reader->seat(std::vector<Seat>{{0, both}, {0, both}, {0, {2}}});
  board.from_memory(0, 0, 6);
  board.from_memory(1, 0, 4);
  board.from_memory(2, 0, 7);
  for (const int worker : {0, 1}) EXPECT_EQ(fills(*reader, worker), (Lines{0, 0, 0, 5, 0}));
  EXPECT_EQ(fills(*reader, 2), (Lines{0, 0, 0, 7, 0}));
}

TEST(BoardFills, AWorkerThatIsNotBoundHasNone) {
  BoardFile board;
  const auto reader = counted(board, 1);
  EXPECT_TRUE(fills(*reader, 0).empty());
  const std::vector<Seat> seat = {{0, {0}}};
  reader->seat(seat);
  board.from_memory(0, 0, 1);
  reader->seat({});
  EXPECT_TRUE(fills(*reader, 0).empty());
  board.from_memory(0, 0, 50);
  reader->seat(seat);
  board.from_memory(0, 0, 2);
  EXPECT_EQ(fills(*reader, 0), (Lines{0, 0, 0, 3, 0}));
}

TEST(BoardFills, NoLineIsLostWhileWorkersMoveAndRead) {
  BoardFile board;
  const auto reader = counted(board, 2);
  const std::vector<Seat> one = {{0, {0}}, {0, {1}}}, other = {{0, {1}}, {0, {0}}};
  reader->seat(one);
  constexpr std::uint64_t kLines = 20'000;
  {
    std::jthread counts([&] {
      for (std::uint64_t line = 0; line < kLines; ++line) board.from_memory(line % 2, 0, 1);
    });
    std::jthread reads([&](const std::stop_token& stop) {
      std::uint64_t last = 0;
      while (!stop.stop_requested()) {
        const std::uint64_t now = fills(*reader, 0)[3];
        EXPECT_GE(now, last);
        last = now;
      }
    });
    for (int turn = 0; turn < 200; ++turn) reader->seat(turn % 2 == 0 ? other : one);
    counts.join();
  }
  EXPECT_EQ(fills(*reader, 0)[3] + fills(*reader, 1)[3], kLines);
}

TEST(BoardFills, CountingIsOnAsLongAsTheyAre) {
  BoardFile board;
  EXPECT_EQ(board->counting.load(), 0U);
  {
    const auto reader = counted(board, 1);
    EXPECT_EQ(board->counting.load(), 1U);
    const auto another = counted(board, 1);
    EXPECT_EQ(board->wanted.load(), 2U);
  }
  EXPECT_EQ(board->counting.load(), 0U);
}

TEST(BoardFills, CpusWithOtherNumbersAreRefused) {
  BoardFile board;
  EXPECT_EQ(BoardFills::find(testing::TempDir() + "/no-devices", two_cores(0, 1), 1), nullptr);
  for (const int other : {2, 64}) {
    try {
      (void)BoardFills::find(board.devices(), two_cores(1, other), 1);
      ADD_FAILURE() << other;
    } catch (const std::runtime_error& fault) {
      EXPECT_EQ(fault.what(), "the board has CPU " + std::to_string(other) +
                                  " elsewhere than the places; use a topology that does not "
                                  "renumber CPUs, and the machine's own places");
    }
  }
  EXPECT_EQ(board->wanted.load(), 0U);
}

// Two workers on one of two chiplets of two cores, on real CPUs.
Decided simulated(const BoardFile& board, RuntimeOptions options = {}) {
  options.workers = 2;
  options.places = synthetic_places("chiplet:2 core:2", {test::real_cpus().front()});
  if (!options.own_approach) options.approach = "static-local";
  Decided all = decided(options);
  all.devices = board.devices();
  return all;
}

TEST(BoardFills, AProfileSaysThatItsFillsAreSimulated) {
  BoardFile board;
  const auto cpu = static_cast<unsigned>(test::real_cpus().front());
  Team team(simulated(board));
  board.from_memory(cpu, board->node_of_chiplet[board->chiplet_of_cpu[cpu]], 8);
  const auto local = [&] {
    return team.profiler().snapshot().workers[0].fills.of(FillSource::memory_local);
  };
  EXPECT_TRUE(test::soon([&] { return local() == 4U; }));  // workers may still begin
  const Profile profile = team.profiler().snapshot();
  EXPECT_EQ(profile.fills_source, "simulated");
  EXPECT_NE(profile_json(profile).find(R"("fills_source":"simulated")"), std::string::npos);
  ASSERT_FALSE(profile.remarks.empty());
  EXPECT_EQ(profile.remarks.front(),
            "fills: simulated, of the CPUs that the workers are bound to; no figures of hardware");
  team.set_pin(false);
  EXPECT_EQ(local(), std::nullopt);
  team.set_pin(true);
  EXPECT_EQ(local(), 4U);
}

TEST(BoardFills, ABoardOfAnotherVersionIsSaid) {
  BoardFile board;
  board->version = 99;
  Team team(simulated(board));
  const std::string remark = "fills: n/a (simulated caches: " + board.devices() +
                             "/0000:00:04.0/resource2: a board of version 99; ";
  EXPECT_TRUE(test::soon([&] {
    const Profile profile = team.profiler().snapshot();
    return !profile.remarks.empty() && profile.remarks[0].starts_with(remark);
  }));
}

// Adds up what it is shown.
class Shown final : public Approach {
 public:
  [[nodiscard]] std::string name() const override { return "shown"; }
  std::atomic<std::uint64_t> lines{0};

 protected:
  Decision decide(const Sample& sample) override {
    lines += sample.fills.memory.value_or(0);
    return {sample.spread, "shown"};
  }
};

TEST(BoardFills, AnApproachIsShownThem) {
  BoardFile board;
  const auto cpu = static_cast<unsigned>(test::real_cpus().front());
  const auto shown = std::make_shared<Shown>();
  std::atomic<bool> over{false};
  RuntimeOptions options;
  options.interval = std::chrono::milliseconds(1);
  options.own_approach = shown;
  options.lent = {
      .work = [&](int) { over.wait(false); }, .busy = [] { return true; }, .placed = [](auto) {}};
  std::uint64_t lines = 0;
  {
    Team team(simulated(board, options));
    EXPECT_TRUE(test::soon([&] {
      board.from_memory(cpu, 0, 20);
      lines += 20;
      return shown->lines > 0;
    }));
    over = true;
    over.notify_all();
  }
  EXPECT_LE(shown->lines, lines);
}

}  // namespace
}  // namespace atl::runtime
