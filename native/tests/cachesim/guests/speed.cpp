// Runs in a guest with simulated caches: how many accesses a second are simulated (make
// perf-cachesim). Each CPU adds to all numbers of an array of its own, again and again.
//
//   cachesim-speed KIB SECONDS
//
// Prints: accesses that were counted, milliseconds to begin and to end counting.
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <thread>
#include <vector>

#include "cachesim/board_of_guest.hpp"
#include "cachesim/guests/memory.hpp"

namespace {

using namespace atl::cachesim;

std::uint64_t accesses(Board& board) {
  std::uint64_t sum = 0;
  for (unsigned cpu = 0; cpu < board.cpus; ++cpu) {
    for (unsigned mode = 0; mode < kModes; ++mode) {
      sum += board.row(cpu, mode)[kLoads] + board.row(cpu, mode)[kStores];
    }
  }
  return sum;
}

void work(const std::atomic<bool>& over, unsigned cpu, std::size_t bytes) {
  run_on(static_cast<int>(cpu));
  std::vector<std::uint64_t> mine(bytes / sizeof(std::uint64_t));
  while (!over.load(std::memory_order_relaxed)) {
    for (volatile std::uint64_t& number : mine) number = number + 1;
  }
}

// How long a switch takes in a guest that is otherwise idle.
double switch_ms(Board& board, bool wanted) {
  const auto asked = std::chrono::steady_clock::now();
  count(board, wanted);
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - asked)
      .count();
}

void run(Board& board, std::size_t bytes, int seconds) {
  const std::uint64_t before = accesses(board);
  const double on_ms = switch_ms(board, true);
  std::atomic<bool> over{false};
  std::vector<std::thread> threads;
  for (unsigned cpu = 0; cpu < board.cpus; ++cpu) {
    threads.emplace_back([&, cpu] { work(over, cpu, bytes); });
  }
  sleep(static_cast<unsigned>(seconds));
  over.store(true);
  for (std::thread& thread : threads) thread.join();
  const double off_ms = switch_ms(board, false);
  std::printf("%llu %.1f %.1f\n", static_cast<unsigned long long>(accesses(board) - before), on_ms,
              off_ms);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  try {
    run(open_board(), static_cast<std::size_t>(std::atol(argv[1])) << 10, std::atoi(argv[2]));
    return 0;
  } catch (const std::exception& fault) {
    std::fprintf(stderr, "cachesim-speed: %s\n", fault.what());
    return 1;
  }
}
