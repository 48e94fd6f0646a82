// Reads memory of a node, each line once a round: cachesim-sweep CPU NODE MIB ROUNDS [CPUS].
// With CPUS that many CPUs from CPU on do so at once, each with memory of its own: none begins
// before all are there.
#include <barrier>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <thread>
#include <vector>

#include "cachesim/guests/memory.hpp"

int main(int argc, char** argv) {
  using namespace atl::cachesim;
  if (argc != 5 && argc != 6) return 2;
  const std::size_t bytes = static_cast<std::size_t>(std::atol(argv[3])) * kMib;
  const int cpus = argc == 6 ? std::atoi(argv[5]) : 1;
  std::barrier all_are_there(cpus);
  const auto read_on = [&](int cpu) {
    try {
      run_on(cpu);
      char* const memory = space_of(std::atoi(argv[2]), bytes);
      all_are_there.arrive_and_wait();
      touch(memory, bytes);
      sweep(memory, bytes, std::atoi(argv[4]));
    } catch (const std::exception& fault) {
      std::fprintf(stderr, "cachesim-sweep: %s\n", fault.what());
      std::_Exit(1);
    }
  };
  std::vector<std::jthread> threads;
  for (int at = 1; at < cpus; ++at) threads.emplace_back(read_on, std::atoi(argv[1]) + at);
  read_on(std::atoi(argv[1]));
  return 0;
}
