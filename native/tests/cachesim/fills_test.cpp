// The table of atoll-fills, from a board that was filled by hand.
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

TEST_F(CachesimFills, SourcesAreSeenFromTheCpusChiplet) {
  count_some();
  const FillsOfChiplets before = fills_of(*board_);
  count_some();
  const FillsOfChiplets found = difference(before, fills_of(*board_));
  const Fills& user = found[kUser][0];
  EXPECT_EQ(user.accesses, 1500U);
  EXPECT_EQ(user.own_l3, 10U);
  EXPECT_EQ(user.other_chiplets, 20U);
  EXPECT_EQ(user.other_nodes, 70U);
  EXPECT_EQ(user.local_memory, 200U);
  EXPECT_EQ(user.remote_memory, 300U);
  EXPECT_EQ(user.written_back, 15U);
  EXPECT_EQ(found[kKernel][3].remote_memory, 9U);
  EXPECT_EQ(found[kUser][3].all(), 0U);
}

TEST_F(CachesimFills, TheTableSaysThatItIsSimulated) {
  count_some();
  EXPECT_EQ(table(fills_of(*board_)),
            "simulated                          user   share         kernel\n"
            "instructions                       9000                      0\n"
            "stall cycles                        700                      0\n"
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
            "              0\n");
}

TEST_F(CachesimFills, NothingCountedIsNoPercent) {
  EXPECT_NE(table(fills_of(*board_)).find("0.0 %"), std::string::npos);
}

}  // namespace
}  // namespace atl::cachesim
