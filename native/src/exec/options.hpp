// The command line of atoll-exec: numactl's flags, places, and the command.
//
// Pure except for getopt's globals. This file only parses the flags, by numactl's rules; other
// files decide what they mean. The rules: getopt_long's spellings (-m0, -m 0, --membind=0,
// --membind 0, abbreviations); at most one memory policy; the last CPU binding wins; 'same'
// repeats the previous node list.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace atl::exec {

// The values are set_mempolicy(2)'s MPOL_* numbers. libnuma 2.0.16 does not know the last one.
enum class MemoryMode : int {
  kPreferred = 1,
  kBind = 2,
  kInterleave = 3,
  kLocal = 4,
  kPreferredMany = 5,       // Linux 5.15
  kWeightedInterleave = 6,  // Linux 6.9
};

struct MemoryFlag {
  MemoryMode mode;
  std::string nodes;  // libnuma's node list; empty for kLocal
  std::string flag;   // numactl's name for it, for messages
};

struct CpuFlag {
  bool by_node;  // true: --cpunodebind; false: --physcpubind
  std::string list;
};

struct Options {
  std::vector<CpuFlag> cpu_flags;  // in command-line order
  std::optional<MemoryFlag> memory;
  std::vector<std::string> places;
  std::string machine_file;  // empty: use the live machine
  std::string malloc;        // empty: leave the allocator unchanged
  bool no_thp = false;
  bool dry_run = false;
  bool list_mallocs = false;
  bool help = false;
  bool version = false;
  char** command = nullptr;  // null-terminated; points into argv
};

// Throws Fault for an unknown flag, a missing value, two memory policies or a missing command.
[[nodiscard]] Options parse_options(int argc, char** argv);

}  // namespace atl::exec
