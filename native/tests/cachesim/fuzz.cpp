// Fuzz target: any text is a machine or a BadMachine of one line. A machine that is accepted is
// simulated for a moment.
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string_view>

#include "cachesim/caches.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace atl::cachesim;
  try {
    const Machine machine =
        parse_machine(std::string_view(reinterpret_cast<const char*>(data), size));
    Caches caches(machine);
    std::uint64_t row[kColumns] = {}, none[kColumns] = {};
    std::uint64_t* const rows[] = {row, none};
    for (unsigned cpu = 0; cpu < machine.cpus.size(); ++cpu) {
      for (const Memory& memory : machine.memory) {
        caches.access(cpu, memory.start, true, row);
        caches.access(cpu, memory.start + memory.bytes - 1, false, row);
        caches.access(cpu, memory.start + memory.bytes, true, row);
      }
      caches.traffic().report(cpu, rows, (cpu + 1) * machine.quantum);
      caches.traffic().settle((cpu + 1) * machine.quantum);
    }
  } catch (const BadMachine& fault) {
    if (std::string_view(fault.what()).find('\n') != std::string_view::npos) {
      std::cerr << "a fault of several lines\n";
      std::abort();
    }
  }
  return 0;
}
