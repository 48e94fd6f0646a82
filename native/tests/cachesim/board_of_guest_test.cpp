// Which device a program of the guest takes for the board, and how several programs count.
#include "cachesim/board_of_guest.hpp"

#include <gtest/gtest.h>

#include <memory>

#include "cachesim/parts.hpp"

namespace atl::cachesim {
namespace {

class BoardOfGuest : public testing::Test {
 protected:
  BoardOfGuest() : devices_(testing::TempDir() + "atoll-devices-" + std::to_string(getpid())) {
    std::filesystem::create_directories(devices_);
  }
  ~BoardOfGuest() override { std::filesystem::remove_all(devices_); }

  // A PCI device with this much memory, which begins with `memory`.
  void add(const char* name, const char* kind, const std::string& memory, std::size_t bytes) {
    std::filesystem::create_directory(devices_ / name);
    std::ofstream(devices_ / name / "vendor") << "0x1af4\n";
    std::ofstream(devices_ / name / "device") << kind << '\n';
    std::ofstream(devices_ / name / "resource2") << memory;
    std::filesystem::resize_file(devices_ / name / "resource2", bytes);
  }
  // The beginning of a board.
  static std::string begun(std::uint32_t version = Board::kVersion) {
    std::string text(Board::kMagic, sizeof Board::kMagic);
    return text.append(reinterpret_cast<const char*>(&version), sizeof version);
  }
  std::string fault() {
    try {
      (void)open_board(devices_);
    } catch (const std::runtime_error& fault) {
      return fault.what();
    }
    return "";
  }

  std::filesystem::path devices_;
};

TEST_F(BoardOfGuest, OnlyABoardIsTakenForOne) {
  add("0000:00:01.0", "0x1000", begun(), Board::kBytes);      // another kind of device
  add("0000:00:02.0", "0x1110", "something", Board::kBytes);  // of another use
  add("0000:00:03.0", "0x1110", begun(), Board::kBytes / 2);  // too small
  EXPECT_EQ(fault(), "no board; the guest's caches are not simulated");
  add("0000:00:04.0", "0x1110", begun(), Board::kBytes);
  EXPECT_EQ(fault(), "");
}

TEST_F(BoardOfGuest, WithoutDevicesThereIsNone) {
  std::filesystem::remove_all(devices_);
  EXPECT_EQ(fault(), "no board; the guest's caches are not simulated");
}

TEST_F(BoardOfGuest, AnotherVersionIsSaid) {
  add("0000:00:04.0", "0x1110", begun(99), Board::kBytes);
  EXPECT_EQ(fault(), (devices_ / "0000:00:04.0/resource2").string() +
                         ": a board of version 99; this program knows 2");
}

TEST_F(BoardOfGuest, NumbersThatNoMachineHasAreRefused) {
  const auto refused = [this](const auto& write_over) {
    const auto board = std::make_unique<Board>();
    begin(*board, Built{}.machine());
    write_over(*board);
    add("0000:00:04.0", "0x1110",
        std::string(reinterpret_cast<const char*>(board.get()), sizeof *board), Board::kBytes);
    return fault() == (devices_ / "0000:00:04.0/resource2").string() +
                          ": a program has written over the board; boot again";
  };
  EXPECT_FALSE(refused([](Board&) {}));
  EXPECT_TRUE(refused([](Board& board) { board.cpus = ~0U; }));
  EXPECT_TRUE(refused([](Board& board) { board.chiplets = kMostChiplets + 1; }));
  EXPECT_TRUE(refused([](Board& board) { board.nodes = kMostNodes + 1; }));
  EXPECT_TRUE(refused([](Board& board) { board.chiplet_of_cpu[7] = 4; }));
  EXPECT_TRUE(refused([](Board& board) { board.node_of_chiplet[3] = 2; }));
}

TEST_F(BoardOfGuest, CountingEndsWithTheLastThatWantsIt) {
  add("0000:00:04.0", "0x1110", begun(), Board::kBytes);
  Board& board = open_board(devices_);
  board.counting.store(1);  // as the simulation answers
  count(board, true);
  count(board, true);
  count(board, false);  // returns although counting goes on
  EXPECT_EQ(board.wanted.load(), 1U);
  board.counting.store(0);
  count(board, false);
  EXPECT_EQ(board.wanted.load(), 0U);
  board.wanted.store(2);  // of programs that were killed, and one that was not
  end_counting(board);
  count(board, false);
  EXPECT_EQ(board.wanted.load(), 0U);
  munmap(&board, Board::kBytes);
}

}  // namespace
}  // namespace atl::cachesim
