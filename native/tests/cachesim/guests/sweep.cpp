// Reads memory of a node on a CPU, each line once a round: cachesim-sweep CPU NODE MIB ROUNDS.
#include <cstdio>
#include <cstdlib>
#include <exception>

#include "cachesim/guests/memory.hpp"

int main(int argc, char** argv) {
  using namespace atl::cachesim;
  if (argc != 5) return 2;
  try {
    run_on(std::atoi(argv[1]));
    const std::size_t bytes = static_cast<std::size_t>(std::atol(argv[3])) * kMib;
    sweep(memory_of(std::atoi(argv[2]), bytes), bytes, std::atoi(argv[4]));
    return 0;
  } catch (const std::exception& fault) {
    std::fprintf(stderr, "cachesim-sweep: %s\n", fault.what());
    return 1;
  }
}
