// Runs in a guest with simulated caches: how many accesses a second are simulated (make
// perf-cachesim). Each CPU adds to all numbers of an array of its own, again and again.
//
//   cachesim-speed KIB MILLION
//
// MILLION: of accesses, by all CPUs together. Prints: accesses that were counted, the host's
// milliseconds to begin and to end counting.
#include <x86intrin.h>

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

void work(unsigned cpu, std::size_t bytes, std::uint64_t additions) {
  run_on(static_cast<int>(cpu));
  std::vector<std::uint64_t> mine(bytes / sizeof(std::uint64_t));
  for (std::uint64_t done = 0; done < additions; done += mine.size()) {
    for (volatile std::uint64_t& number : mine) number = number + 1;
  }
}

// The host's time: the guest's own clocks follow the simulated cycles while these are counted, but
// RDTSC reads the host's counter. Made while nothing is counted.
class HostClock {
 public:
  HostClock() {
    const auto start = std::chrono::steady_clock::now();
    const std::uint64_t first = __rdtsc();
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    const std::uint64_t ticks = __rdtsc() - first;
    ticks_in_ms_ =
        static_cast<double>(ticks) /
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  }
  [[nodiscard]] double now_ms() const { return static_cast<double>(__rdtsc()) / ticks_in_ms_; }

 private:
  double ticks_in_ms_ = 0;
};

// How long a switch takes in a guest that is otherwise idle.
double switch_ms(const HostClock& clock, Board& board, bool wanted) {
  const double asked = clock.now_ms();
  count(board, wanted);
  return clock.now_ms() - asked;
}

void run(Board& board, std::size_t bytes, std::uint64_t million) {
  const HostClock clock;
  const std::uint64_t before = accesses(board);
  const double on_ms = switch_ms(clock, board, true);
  std::vector<std::thread> threads;
  // An addition is a load and a store.
  for (unsigned cpu = 0; cpu < board.cpus; ++cpu) {
    threads.emplace_back(work, cpu, bytes, million * 500'000 / board.cpus);
  }
  for (std::thread& thread : threads) thread.join();
  const double off_ms = switch_ms(clock, board, false);
  std::printf("%llu %.1f %.1f\n", static_cast<unsigned long long>(accesses(board) - before), on_ms,
              off_ms);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  try {
    run(open_board(), static_cast<std::size_t>(std::atol(argv[1])) << 10,
        std::strtoull(argv[2], nullptr, 10));
    return 0;
  } catch (const std::exception& fault) {
    std::fprintf(stderr, "cachesim-speed: %s\n", fault.what());
    return 1;
  }
}
