// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-or-later
// The board of the guest that this program runs in (board.hpp).
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>

#include "board.hpp"

namespace atl::cachesim {

inline constexpr const char* kPciDevices = "/sys/bus/pci/devices";

// Whether places have numbers that a board can have. Any program that may count can write to them.
inline bool is_sound(const Board& board) {
  const auto below = [](std::uint32_t bound) {
    return [bound](std::uint8_t number) { return number < bound; };
  };
  return board.cpus <= kMostCpus && board.chiplets <= kMostChiplets && board.nodes <= kMostNodes &&
         std::all_of(board.chiplet_of_cpu, board.chiplet_of_cpu + board.cpus,
                     below(board.chiplets)) &&
         std::all_of(board.node_of_chiplet, board.node_of_chiplet + board.chiplets,
                     below(board.nodes));
}

// Null: there is none. Throws std::runtime_error of one line if there is one that this program
// cannot use. `devices`: where the kernel shows the PCI devices.
inline Board* find_board(const std::filesystem::path& devices) {
  const auto word_of = [](const std::filesystem::path& path) {
    std::string word;
    std::ifstream(path) >> word;
    return word;
  };
  // Not by std::filesystem, whose directories end the program where memory lacks.
  struct Close {
    void operator()(DIR* folder) const { closedir(folder); }
  };
  const std::unique_ptr<DIR, Close> folder(opendir(devices.c_str()));
  if (folder == nullptr) return nullptr;
  while (const dirent* const entry = readdir(folder.get())) {
    const std::filesystem::path device = devices / entry->d_name;
    if (word_of(device / "vendor") != "0x1af4" || word_of(device / "device") != "0x1110") continue;
    const std::string memory = device / "resource2";
    const int file = open(memory.c_str(), O_RDWR | O_CLOEXEC);
    if (file < 0) throw std::runtime_error(memory + ": " + std::strerror(errno));
    struct stat found{};
    const bool is_large = fstat(file, &found) == 0 && found.st_size >= off_t{Board::kBytes};
    void* const at = is_large
                         ? mmap(nullptr, Board::kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0)
                         : MAP_FAILED;
    close(file);
    if (at == MAP_FAILED) continue;
    // Others use such devices too.
    Board& board = *static_cast<Board*>(at);
    if (std::memcmp(board.magic, Board::kMagic, sizeof board.magic) == 0) {
      if (board.version != Board::kVersion) {
        throw std::runtime_error(memory + ": a board of version " + std::to_string(board.version) +
                                 "; this program knows " + std::to_string(Board::kVersion));
      }
      if (is_sound(board)) return &board;
      throw std::runtime_error(memory + ": a program has written over the board; boot again");
    }
    munmap(at, Board::kBytes);
  }
  return nullptr;
}

// Throws std::runtime_error of one line.
inline Board& open_board(const std::filesystem::path& devices = kPciDevices) {
  if (Board* const board = find_board(devices)) return *board;
  throw std::runtime_error("no board; the guest's caches are not simulated");
}

// Returns when QEMU has done what the board wants.
//
// QEMU has to translate something to notice (plugin.cpp), so this runs code that is new each time:
// what was written to is translated again. It makes no system calls in between: after a change QEMU
// has to translate the kernel's code again too, which takes longer than the change.
inline void wait_for_answer(Board& board) {
  static void* const page =
      mmap(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) throw std::runtime_error("no page for code");
  const auto is_done = [&] { return (board.counting.load() != 0) == (board.wanted.load() != 0); };
  while (!is_done()) {
    *static_cast<volatile unsigned char*>(page) = 0xC3;  // ret
    reinterpret_cast<void (*)()>(page)();
    for (int spins = 0; spins < 10'000 && !is_done(); ++spins) {
    }
  }
}

// Joins those who want to count, or leaves them; counting ends with the last.
inline void count(Board& board, bool wanted) {
  if (wanted) {
    board.wanted.fetch_add(1);
  } else {
    std::uint32_t others = board.wanted.load();
    while (others != 0 && !board.wanted.compare_exchange_weak(others, others - 1)) {
    }
  }
  wait_for_answer(board);
}

// Ends counting for all who want it, also for programs that were killed while they did.
inline void end_counting(Board& board) {
  board.by_hand.store(0);
  board.wanted.store(0);
  wait_for_answer(board);
}

// The space of this program, which runs on `cpu` only. A CPU's space is that of what ran at the end
// of its last quantum, so this runs for many quanta, until the answer stays.
inline unsigned own_space(const Board& board, unsigned cpu) {
  unsigned last = 0;
  for (int same = 0; same < 3; ++same) {
    for (std::uint64_t spin = 0; spin < 10 * board.quantum; ++spin) asm volatile("");
    const unsigned now = board.space_of_cpu[cpu].load();
    if (now != last) same = 0;
    last = now;
  }
  return last;
}

}  // namespace atl::cachesim
