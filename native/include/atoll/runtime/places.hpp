// The places of a machine as the runtime sees them, and where they come from: a machine file, the
// live system, or a few words (synthetic). Plain values and pure functions; no system call is
// behind any of them but `places_here`. Who steals from whom is victims.hpp, which rank sits on
// which core is mapping.hpp.
//
// Words: a core is what one worker sits on; a chiplet is a set of cores with the fastest path to
// each other (topology.hpp says where chiplets come from); a machine without chiplets has one per
// NUMA node, so that every core is in exactly one. A chiplet lies in one node and one package:
// one that a machine file stretches over several counts as one for each.
//
// Texts are judged as from a stranger: a fault is a RuntimeFault of one line, never a crash. At
// most 8192 cores (the most CPUs of an x86 Linux) and 1024 chiplets (their distances are a square).
#pragma once

#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "atoll/runtime/export.hpp"

namespace atl {

// What a caller asked for cannot be had; one line that says what to do.
class ATOLL_EXPORT RuntimeFault : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct Core {
  std::vector<int> cpus;  // OS indices of the PUs that a worker on this core may use, sorted
  int chiplet = 0;        // index, dense from 0 over the machine
  int node = 0;           // OS index of the NUMA node whose memory is its own
  int package = 0;        // index, dense from 0
  bool operator==(const Core&) const = default;
};

// Cores in the order package, node, chiplet, core; the index of a core is its name.
// `chiplet_levels[a][b]`: how far chiplet b is from a: 0 for itself, then 1, 2, ... by measured
// level (a profile's) or, without one, 1 within a node (of one package), 2 within a package, 3
// beyond. Symmetric; only the order of the numbers means something.
struct Places {
  std::vector<Core> cores;
  std::vector<std::vector<int>> chiplet_levels;
  std::uint64_t chiplet_l3_bytes = 0;  // of the chiplet with the smallest L3; 0: not known
  bool operator==(const Places&) const = default;

  // How many.
  ATOLL_EXPORT int chiplets() const;
  // OS indices, sorted, each once.
  ATOLL_EXPORT std::vector<int> nodes() const;
  // Indices of cores, sorted. RuntimeFault: there is no such chiplet; no core is of that node.
  ATOLL_EXPORT std::vector<int> cores_of_chiplet(int chiplet) const;
  ATOLL_EXPORT std::vector<int> cores_of_node(int os_index) const;
};

// What the affinity mask and the cgroup leave of the machine in a file of `atoll topo --json`
// (format atoll/machine 1): its `allowed` PUs. Where the machine has no nodes all is node 0, and
// a package without chiplets is one.
ATOLL_EXPORT Places places_from_machine(std::string_view machine_json);

// The live machine, cut down to what the calling thread may run on. Reads it anew at each call,
// with hwloc in a child process: tens of milliseconds.
ATOLL_EXPORT Places places_here();

// The same places with the levels between chiplets that `atoll measure` found (format
// atoll/profile 1, `inference.levels`). The level of two chiplets is that of the smallest measured
// group round both; a pair that the profile does not hold stays as far as the farthest measured
// pair of its kind (same node, same package, beyond). Chiplets themselves stay as they are: those
// that only a profile shows come in by `atoll topo --profile FILE --json`.
// RuntimeFault: no profile, one of an emulated CPU, without levels, or without these CPUs.
ATOLL_EXPORT Places places_with_profile(Places places, std::string_view profile_json);

// Made-up places, for tests and what-ifs: "package:2 node:2 chiplet:4 core:8 pu:2". Each number
// counts inside the one above; levels stand in this order and all but core may be left out (1). A
// list gives one count for each thing above, in their order: "node:2 chiplet:2,3 core:8,6,8,4,4".
// PUs take `real_cpus` in turn, over and over, so that many virtual cores run on a few real CPUs;
// where it is empty they are counted up, which is for what starts no thread. Nodes are numbered
// from 0 and need not exist on the machine. RuntimeFault names the column of a fault.
ATOLL_EXPORT Places synthetic_places(std::string_view text, const std::vector<int>& real_cpus);

// A part of the places. What is left is renumbered without gaps (cores, chiplets, packages; nodes
// keep their OS index); levels stay the numbers they were. RuntimeFault: nothing is left, or a
// core that is not there.
ATOLL_EXPORT Places restrict_to_cores(const Places& places, std::span<const int> cores);
ATOLL_EXPORT Places restrict_to_cpus(const Places& places, std::span<const int> cpus);

}  // namespace atl
