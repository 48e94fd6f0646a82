// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-or-later
// The machine that the caches are simulated of, and its description in text.
//
// A description is lines of words. Blank lines and those that begin with # are skipped. Every key
// but the last three appears once; the CPUs are numbered from 0, in order.
//
//   l1 SETS WAYS        of a core; SETS: a power of two, at least 64
//   l2 SETS WAYS        of a core; the same
//   l3 SETS WAYS        of a chiplet; SETS: a multiple of 64
//   latency WHAT CYCLES one for each of kLatencyNames
//   clock MHZ           of the cores
//   quantum CYCLES      how far a CPU may run ahead of the slowest
//   bandwidth WHAT BYTES   in 1000 cycles, for any of kBandwidthNames; 0 or no line: no limit
//   memory NODE START BYTES   guest-physical addresses, multiples of 1 MiB, at most 64 GiB
//   cpu NUMBER core N chiplet N node N package N
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string_view>
#include <vector>

namespace atl::cachesim {

inline constexpr unsigned kMostCpus = 64;
inline constexpr unsigned kMostChiplets = 63;
inline constexpr unsigned kMostNodes = 16;
inline constexpr unsigned kMostWays = 16;
inline constexpr unsigned kLineShift = 6;  // 64 bytes
inline constexpr unsigned kMibShift = 20;
inline constexpr std::uint64_t kMostBytes = std::uint64_t{64} << 30;

// Sets with the same low bits of the line's number share nothing with others (caches.hpp).
inline constexpr std::uint32_t kShards = 64;

struct Shape {
  std::uint32_t sets = 0;
  std::uint32_t ways = 0;
};

// From where a line comes, seen from the core that wants it. A store that takes copies away waits
// as long as it would for the farthest of them.
enum Source : std::uint8_t {
  kL2,
  kOwnL3,         // the chiplet's L3, or another core of the chiplet
  kOtherChiplet,  // a cache of the same node
  kNearCache,     // a cache of another node of the package
  kFarCache,      // a cache of another package
  kLocalMemory,
  kNearMemory,  // of another node of the package
  kFarMemory,   // of another package
  kSources
};
inline constexpr const char* kLatencyNames[kSources] = {"l2",          "own_l3",    "other_chiplet",
                                                        "near_cache",  "far_cache", "local_memory",
                                                        "near_memory", "far_memory"};

// What has a bandwidth: the link of each chiplet to its node, in and out each; the memory of each
// node, reads and writes together; the way from each package to each other.
enum Limit : std::uint8_t { kLink, kMemory, kInterconnect, kLimits };
inline constexpr const char* kBandwidthNames[kLimits] = {"link", "memory", "interconnect"};

struct Cpu {
  unsigned core = 0;
  unsigned chiplet = 0;
  unsigned node = 0;
  unsigned package = 0;
};

struct Memory {
  unsigned node = 0;
  std::uint64_t start = 0;  // bytes
  std::uint64_t bytes = 0;
};

struct Machine {
  Shape l1, l2, l3;
  std::uint32_t latency[kSources] = {};   // cycles
  std::uint32_t bandwidth[kLimits] = {};  // bytes in 1000 cycles; 0: no limit
  std::uint32_t clock_mhz = 0;
  std::uint64_t quantum = 0;  // cycles
  std::vector<Memory> memory;
  std::vector<Cpu> cpus;
  unsigned cores = 0, chiplets = 0, nodes = 0;  // one more than the largest number

  // The package of a node, by its CPUs; without CPUs: node modulo packages, as the guest has it.
  std::vector<unsigned> package_of_node;
};

// One line: the number of the line in the description, what is wrong there, what it wants.
class BadMachine : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Throws BadMachine.
[[nodiscard]] Machine parse_machine(std::string_view text);

}  // namespace atl::cachesim
