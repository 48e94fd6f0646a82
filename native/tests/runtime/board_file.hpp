// The board of simulated caches in a file, which is a device's in a guest, and a thread that
// answers as the simulation does. Of 64 CPUs, 2 is on chiplet 1 and 3 on chiplet 2, which is of
// node 1. All others are on chiplet 0, which is of node 0, as chiplet 1 is.
#pragma once

#include <atomic>
#include <fstream>
#include <string>
#include <thread>

#include "cachesim/board_of_guest.hpp"
#include "runtime/folder.hpp"

namespace atl::test {

class BoardFile {
 public:
  BoardFile() {
    folder_.write("0000:00:04.0/vendor", "0x1af4\n");
    folder_.write("0000:00:04.0/device", "0x1110\n");
    folder_.write("0000:00:04.0/resource2", begun());
    board_ = &cachesim::open_board(folder_.path);
    simulation_ = std::jthread([this](const std::stop_token& stop) {
      while (!stop.stop_requested()) {
        board_->counting.store(board_->wanted.load() != 0 ? 1 : 0);
        std::this_thread::yield();
      }
    });
  }
  ~BoardFile() {
    simulation_.request_stop();
    simulation_.join();
    munmap(board_, cachesim::Board::kBytes);
  }
  BoardFile(const BoardFile&) = delete;
  BoardFile& operator=(const BoardFile&) = delete;

  const std::string& devices() const { return folder_.path; }
  cachesim::Board& operator*() { return *board_; }
  cachesim::Board* operator->() { return board_; }

  void from_chiplet(unsigned cpu, unsigned chiplet, std::uint64_t lines) {
    add(cpu, cachesim::kFromChiplet + chiplet, lines);
  }
  void from_memory(unsigned cpu, unsigned node, std::uint64_t lines) {
    add(cpu, cachesim::kFromMemory + node, lines);
  }

 private:
  static std::string begun() {
    std::string text(cachesim::Board::kBytes, '\0');
    cachesim::Board board{};
    std::memcpy(board.magic, cachesim::Board::kMagic, sizeof board.magic);
    board.version = cachesim::Board::kVersion;
    board.cpus = cachesim::kMostCpus;
    board.chiplets = 3;
    board.nodes = 2;
    board.chiplet_of_cpu[2] = 1;
    board.chiplet_of_cpu[3] = 2;
    board.node_of_chiplet[2] = 1;
    std::memcpy(text.data(), static_cast<const void*>(&board), sizeof board);
    return text;
  }
  void add(unsigned cpu, unsigned column, std::uint64_t lines) {
    cachesim::add(board_->row(cpu, cachesim::kUser)[column], lines);
  }

  Folder folder_;
  cachesim::Board* board_ = nullptr;
  std::jthread simulation_;
};

}  // namespace atl::test
