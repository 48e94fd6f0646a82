// What atoll-fills prints, from a board that was filled by hand.
#include "cachesim/fills/fills.hpp"

#include <gtest/gtest.h>

#include <memory>

#include "cachesim/parts.hpp"

namespace atl::cachesim {
namespace {

class CachesimFills : public testing::Test {
 protected:
  CachesimFills() { begin(*board_, Built{}.machine()); }

  // Of CPU 1, on chiplet 0 of node 0: chiplets 0 to 3 of nodes 0, 0, 1, 1.
  void count_some() {
    std::uint64_t* const row = board_->row(1, kUser);
    row[kInstructions] += 9000;
    row[kStalls] += 700;
    row[kQueued] += 60;
    row[kLoads] += 1000;
    row[kStores] += 500;
    row[kL2Hits] += 40;
    row[kTakenAway] += 3;
    for (unsigned at = 0; at < 4; ++at) row[kFromChiplet + at] += 10 * (at + 1);
    row[kFromMemory] += 200;
    row[kFromMemory + 1] += 300;
    row[kWritten] += 7;
    row[kWritten + 1] += 8;
    board_->row(6, kKernel)[kFromMemory] += 9;
  }

  std::unique_ptr<Board> board_ = std::make_unique<Board>();
};

TEST_F(CachesimFills, TheDifferenceOfTwoReadingsIsWhatWasCountedBetween) {
  count_some();
  board_->cycles[2].store(5000);
  const Counts before = read(*board_);
  count_some();
  board_->cycles[3].store(12'000);
  board_->lost_patience.store(2);
  const Counts found = difference(before, read(*board_));
  EXPECT_EQ(found.cycles, 7000U);
  EXPECT_EQ(found.lost_patience, 2U);
  EXPECT_EQ(found.rows[kUser][0].columns[kFromChiplet + 3], 40U);
  EXPECT_EQ(found.rows[kUser][3].columns[kFromChiplet + 3], 0U);
  EXPECT_EQ(found.rows[kKernel][3].columns[kFromMemory], 9U);
}

TEST_F(CachesimFills, ADifferenceHoldsAcrossAnOverflow) {
  board_->row(0, kUser)[kLoads] = ~std::uint64_t{0} - 4;
  const Counts before = read(*board_);
  board_->row(0, kUser)[kLoads] += 10;
  EXPECT_EQ(difference(before, read(*board_)).rows[kUser][0].columns[kLoads], 10U);
}

TEST_F(CachesimFills, TheJsonHasARowForEachChipletAndMode) {
  count_some();
  board_->cycles[2].store(5000);
  const std::string none =
      R"({"instructions":0,"loads":0,"stores":0,"l2_hits":0,"taken_away":0,"stall_cycles":0,)"
      R"("queue_cycles":0,"from_chiplets":[0,0,0,0],"from_memory":[0,0],"written":[0,0]})";
  EXPECT_EQ(
      json(*board_, read(*board_)),
      R"({"format":"atoll/fills","version":1,"source":"simulated","quantum_cycles":1000,)"
      R"("clock_mhz":2000,"cycles":5000,"lost_patience":0,"node_of_chiplet":[0,0,1,1],)"
      R"("package_of_node":[0,1],"user":[)"
      R"({"instructions":9000,"loads":1000,"stores":500,"l2_hits":40,"taken_away":3,)"
      R"("stall_cycles":700,"queue_cycles":60,"from_chiplets":[10,20,30,40],)"
      R"("from_memory":[200,300],"written":[7,8]},)" +
          none + "," + none + "," + none + R"(],"kernel":[)" + none + "," + none + "," + none +
          "," +
          R"({"instructions":0,"loads":0,"stores":0,"l2_hits":0,"taken_away":0,"stall_cycles":0,)"
          R"("queue_cycles":0,"from_chiplets":[0,0,0,0],"from_memory":[9,0],"written":[0,0]})"
          "]}\n");
}

TEST_F(CachesimFills, TheTableSaysThatItIsSimulated) {
  count_some();
  EXPECT_EQ(table(*board_, read(*board_)),
            "simulated                          user   share         kernel\n"
            "instructions                       9000                      0\n"
            "stall cycles                        700                      0\n"
            "of them queued                       60                      0\n"
            "accesses                           1500                      0\n"
            "L2 hits                              40                      0\n"
            "written back                         15                      0\n"
            "taken away                            3                      0\n"
            "from own L3                          10   1.7 %              0\n"
            "from other chiplets                  20   3.3 %              0\n"
            "from other nodes                     70  11.7 %              0\n"
            "from local memory                   200  33.3 %              0\n"
            "from remote memory                  300  50.0 %              9\n"
            "\n"
            "simulated, user, from            own L3 other chiplets    other nodes   local memory"
            "  remote memory\n"
            "to chiplet 0                         10             20             70            200"
            "            300\n"
            "to chiplet 1                          0              0              0              0"
            "              0\n"
            "to chiplet 2                          0              0              0              0"
            "              0\n"
            "to chiplet 3                          0              0              0              0"
            "              0\n"
            "\n"
            "waits for the slowest CPU that were given up: 0\n");
}

TEST_F(CachesimFills, NothingCountedIsNoPercent) {
  EXPECT_NE(table(*board_, read(*board_)).find("0.0 %"), std::string::npos);
}

}  // namespace
}  // namespace atl::cachesim
