// Runs in a guest with simulated caches: access patterns whose fills are known by arithmetic,
// counted from the board. Prints a JSON object for each pattern (tests/vm/test_simulated.py).
//
//   cachesim-patterns ON OTHER_CORE OTHER_CHIPLET OTHER_NODE FAR_NODE
//
// ON: the CPU that works; then CPUs of the same chiplet, of another and of another node; then the
// node whose memory is remote. The local one is node 0.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "cachesim/board_of_guest.hpp"
#include "cachesim/guests/memory.hpp"

namespace {

using namespace atl::cachesim;

Row read_row(const Board& board, unsigned cpu) { return board.rows[cpu][kUser]; }

// What a CPU or a space counted in user mode between two rows, under a name.
void print(const char* name, unsigned number, const Row& before, const Row& after,
           const Board& board) {
  const auto grown = [&](unsigned at) { return after.columns[at] - before.columns[at]; };
  const auto list = [&](unsigned from, unsigned length) {
    std::string text;
    for (unsigned at = from; at < from + length; ++at) {
      text += (text.empty() ? "" : ", ") + std::to_string(grown(at));
    }
    return "[" + text + "]";
  };
  std::cout << "{\"pattern\": \"" << name << "\", \"number\": " << number
            << ", \"accesses\": " << grown(kLoads) + grown(kStores)
            << ", \"l2_hits\": " << grown(kL2Hits) << ", \"taken_away\": " << grown(kTakenAway)
            << ", \"chiplets\": " << list(kFromChiplet, board.chiplets)
            << ", \"memory\": " << list(kFromMemory, board.nodes)
            << ", \"written\": " << list(kWritten, board.nodes) << "}" << std::endl;
}

void measure(Board& board, const char* name, const std::vector<unsigned>& cpus,
             const std::function<void()>& body) {
  std::vector<Row> before;
  for (const unsigned cpu : cpus) before.push_back(read_row(board, cpu));
  body();
  for (std::size_t at = 0; at < cpus.size(); ++at) {
    print(name, cpus[at], before[at], read_row(board, cpus[at]), board);
  }
}

void on_two_cpus(unsigned one, unsigned other, const std::function<void(unsigned me)>& body) {
  std::thread second([&] {
    run_on(static_cast<int>(other));
    body(1);
  });
  run_on(static_cast<int>(one));
  body(0);
  second.join();
}

// Two CPUs hand a line to and fro: each waits for its turn, then gives it to the other.
constexpr std::uint64_t kTurns = 4000;
struct alignas(128) Ball {
  std::atomic<std::uint64_t> turn{0};
};
void hand_over(Board& board, const char* name, unsigned one, unsigned other) {
  Ball ball;
  measure(board, name, {one, other}, [&] {
    on_two_cpus(one, other, [&](unsigned me) {
      for (std::uint64_t mine = me; mine < 2 * kTurns; mine += 2) {
        while (ball.turn.load(std::memory_order_relaxed) != mine) __builtin_ia32_pause();
        ball.turn.store(mine + 1, std::memory_order_relaxed);
      }
    });
  });
}

// Two CPUs add to numbers of their own, `apart` bytes from each other.
constexpr int kAdditions = 100'000;
void add_apart(Board& board, const char* name, unsigned one, unsigned other, std::size_t apart) {
  alignas(128) static char numbers[4 * kLine];
  std::atomic<int> ready{0};
  measure(board, name, {one, other}, [&] {
    on_two_cpus(one, other, [&](unsigned me) {
      auto* const mine = reinterpret_cast<volatile std::uint64_t*>(numbers + me * apart);
      ready.fetch_add(1);
      while (ready.load() != 2) __builtin_ia32_pause();
      for (int at = 0; at < kAdditions; ++at) *mine = *mine + 1;
    });
  });
}

// Instructions of which each makes a known number of accesses: a load of two lines, of two lines on
// two pages, an atomic one, one in thread-local memory (with a segment prefix), a load of 32 bytes.
void count_accesses(Board& board, unsigned on, char* memory) {
  constexpr int kTimes = 100'000;
  const auto repeat = [&](const char* name, const auto& instruction) {
    measure(board, name, {on}, [&] {
      const auto once = instruction;  // what it needs is in registers
      for (int time = 0; time < kTimes; ++time) once();
    });
  };
  const auto load_at = [](const char* at) {
    return [at] { asm volatile("movq (%0), %%rax" : : "r"(at) : "rax"); };
  };
  repeat("two_lines", load_at(memory + kLine - 4));
  repeat("two_pages", load_at(memory + 4096 - 4));
  repeat("atomic", [memory] { asm volatile("lock incq (%0)" : : "r"(memory)); });
  repeat("vector", [memory] { asm volatile("vmovdqu (%0), %%ymm0" : : "r"(memory) : "xmm0"); });
  static thread_local std::uint64_t own = 0;
  std::uintptr_t start = 0;  // of the thread's memory, which its first word says
  asm("movq %%fs:0, %0" : "=r"(start));
  repeat("atomic_of_thread", [offset = reinterpret_cast<std::uintptr_t>(&own) - start] {
    asm volatile("xchgq %%rax, %%fs:(%0)" : : "r"(offset) : "rax");
  });
}

// A reader on another CPU cuts a sweep into windows of simulated time, by the clock of the CPU that
// sweeps. Prints how long each was, and what the CPU spent on instructions and waits meanwhile.
void cut_into_windows(Board& board, unsigned on, unsigned reader, const char* memory) {
  constexpr std::uint64_t kCycles = 1'000'000;
  std::atomic<bool> is_over{false};
  std::thread reads([&] {
    run_on(static_cast<int>(reader));
    const auto spent = [&] {
      std::uint64_t sum = 0;
      for (const Row& row : board.rows[on])
        sum += row.columns[kInstructions] + row.columns[kStalls];
      return sum;
    };
    std::uint64_t began = board.cycles[on].load(), spent_before = spent();
    while (!is_over.load()) {
      const std::uint64_t now = board.cycles[on].load();
      if (now - began < kCycles) continue;
      const std::uint64_t spent_now = spent();
      std::cout << "{\"pattern\": \"window\", \"cycles\": " << now - began
                << ", \"spent\": " << spent_now - spent_before << "}" << std::endl;
      began = board.cycles[on].load();
      spent_before = spent();
    }
  });
  sweep(memory, 4 * kMib, 1);
  is_over.store(true);
  reads.join();
}

// A program that writes where only the simulation should harms the counts, not the simulation.
void scribble(Board& board) {
  const std::uint32_t cpus = board.cpus;
  const std::uint64_t quantum = board.quantum;
  board.cpus = ~0U;
  board.quantum = 0;
  count(board, true);
  count(board, false);
  board.cpus = cpus;
  board.quantum = quantum;
}

// Two processes in turn on one CPU: one sweeps local memory once, the other remote memory twice.
// Each prints what its space counted.
void in_two_processes(Board& board, unsigned on, const char* local, const char* remote) {
  for (const int rounds : {1, 2}) {
    if (fork() != 0) continue;
    const unsigned space = own_space(board, on);
    const Row before = board.rows_of_spaces[space][kUser];
    sweep(rounds == 1 ? local : remote, 40 * kMib, rounds);
    (void)own_space(board, on);  // until all is charged
    print("process", space, before, board.rows_of_spaces[space][kUser], board);
    _exit(0);
  }
  while (wait(nullptr) > 0) {
  }
}

void all(Board& board, char** cpus) {
  const auto number = [&](int at) { return static_cast<unsigned>(std::atoi(cpus[at])); };
  const unsigned on = number(0);
  run_on(static_cast<int>(on));
  char* const local = memory_of(0, 48 * kMib);
  char* const remote = memory_of(static_cast<int>(number(4)), 48 * kMib);
  count(board, true);

  sweep(local, 256 * kKib, 2);
  measure(board, "l2", {on}, [&] { sweep(local, 256 * kKib, 20); });
  sweep(local, 8 * kMib, 2);
  measure(board, "own_l3", {on}, [&] { sweep(local, 8 * kMib, 2); });
  measure(board, "local_memory", {on}, [&] { sweep(local + 8 * kMib, 40 * kMib, 1); });
  measure(board, "remote_memory", {on}, [&] { sweep(remote, 48 * kMib, 1); });

  count_accesses(board, on, local);
  cut_into_windows(board, on, number(3), local + 44 * kMib);
  in_two_processes(board, on, local, remote);
  hand_over(board, "hand_over_in_chiplet", on, number(1));
  hand_over(board, "hand_over_in_node", on, number(2));
  hand_over(board, "hand_over_to_node", on, number(3));
  add_apart(board, "false_sharing", on, number(2), sizeof(std::uint64_t));
  add_apart(board, "apart", on, number(2), 2 * kLine);
  count(board, false);
  const Row before = read_row(board, on);
  sweep(local, 8 * kMib, 1);
  print("off", on, before, read_row(board, on), board);
  scribble(board);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) return 2;
  try {
    all(open_board(), argv + 1);
    return 0;
  } catch (const std::exception& fault) {
    std::fprintf(stderr, "cachesim-patterns: %s\n", fault.what());
    return 1;
  }
}
