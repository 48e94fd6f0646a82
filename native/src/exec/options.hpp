// The command line of atoll-exec: numactl's flags, places, and the command.
//
// Pure but for getopt's globals. What flags mean is decided elsewhere; here they are only
// taken apart, with numactl's rules: getopt_long's spellings (-m0, -m 0, --membind=0,
// --membind 0, abbreviations), one memory policy at most, the last of several CPU bindings
// holds, 'same' repeats the node list before it.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace atl::exec {

// Values are the MPOL_* numbers of set_mempolicy(2); libnuma 2.0.16 does not know the last one.
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
  std::string flag;   // as numactl calls it, for messages
};

struct CpuFlag {
  bool by_node;  // --cpunodebind, else --physcpubind
  std::string list;
};

struct Options {
  std::vector<CpuFlag> cpu_flags;  // in their order
  std::optional<MemoryFlag> memory;
  std::vector<std::string> places;
  std::string machine_file;  // empty: the live machine
  std::string malloc;        // empty: as the user has it
  bool no_thp = false;
  bool dry_run = false;
  bool list_mallocs = false;
  bool help = false;
  bool version = false;
  char** command = nullptr;  // null-terminated; points into argv
};

// Throws Fault on an unknown flag, a missing value, two memory policies, a missing command.
[[nodiscard]] Options parse_options(int argc, char** argv);

}  // namespace atl::exec
