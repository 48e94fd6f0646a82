// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-or-later
// The board of the guest that this program runs in (board.hpp).
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

#include "board.hpp"

namespace atl::cachesim {

inline Board& open_board() {
  for (const auto& device : std::filesystem::directory_iterator("/sys/bus/pci/devices")) {
    std::string vendor, kind;
    std::ifstream(device.path() / "vendor") >> vendor;
    std::ifstream(device.path() / "device") >> kind;
    if (vendor != "0x1af4" || kind != "0x1110") continue;
    const int file = open((device.path() / "resource2").c_str(), O_RDWR | O_CLOEXEC);
    void* const at = mmap(nullptr, Board::kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (at == MAP_FAILED) break;
    return *static_cast<Board*>(at);
  }
  throw std::runtime_error("no board; the guest's caches are not simulated");
}

// Counts, or stops to count. QEMU has to translate something to notice (plugin.cpp), so this runs
// code that is new each time: what was written to is translated again.
inline void count(Board& board, bool wanted) {
  void* const page =
      mmap(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) throw std::runtime_error("no page for code");
  board.wanted.store(wanted ? 1 : 0);
  while ((board.counting.load() != 0) != wanted) {
    *static_cast<volatile unsigned char*>(page) = 0xC3;  // ret
    reinterpret_cast<void (*)()>(page)();
    usleep(1000);
  }
  munmap(page, 4096);
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
