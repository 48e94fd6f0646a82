// The places of a machine as the runtime sees them, and their sources: a machine file, the live
// system, or a short description (synthetic). Plain values and pure functions; only `places_here`
// makes system calls. victims.hpp orders the victims of a thief, mapping.hpp places ranks on cores.
//
// Terms: a core is the place of one worker; a chiplet is a set of cores with the fastest path to
// each other (topology.hpp explains how chiplets are found); a machine without chiplets has one per
// NUMA node, so that each core is in exactly one. A chiplet is in one node and one package: a
// chiplet that a machine file stretches over several counts as one for each.
// Texts are not trusted: an error in one becomes a RuntimeFault of one line, never a crash. At most
// 8192 cores (the most CPUs of an x86 Linux) and 1024 chiplets (their distances are a square).
#pragma once

#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "atoll/runtime/export.hpp"

namespace atl {

// A request that is invalid or not possible here; one line that says what to do.
class ATOLL_EXPORT RuntimeFault : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct Core {
  std::vector<int> cpus;  // OS indices of the PUs that a worker on this core may use, sorted
  int chiplet = 0;        // index, dense from 0 over the machine
  int node = 0;           // OS index of its NUMA node
  int package = 0;        // index, dense from 0
  bool operator==(const Core&) const = default;
};

// Cores in the order package, node, chiplet, core; the index of a core is its name.
// `chiplet_levels[a][b]`: how far chiplet b is from a: 0 for itself, then 1, 2, ... by measured
// level (from a profile) or, without a profile, 1 within a node (of one package), 2 within a
// package, 3 beyond. Symmetric; only the order of the numbers matters.
struct Places {
  std::vector<Core> cores;
  std::vector<std::vector<int>> chiplet_levels;
  std::uint64_t chiplet_l3_bytes = 0;  // of the chiplet with the smallest L3; 0: not known
  // By synthetic_places: a runtime then maps its nodes to the machine's when it places memory, and
  // has a worker per core whatever the cgroup's CPU quota is.
  bool made_up = false;
  // By level: one way of a cache line between cores of two such chiplets, in ns, as a profile has
  // it. 0, or past the end: not known.
  std::vector<double> level_ns = {};
  bool operator==(const Places&) const = default;

  // Number of chiplets.
  ATOLL_EXPORT int chiplets() const;
  // OS indices, sorted, without duplicates.
  ATOLL_EXPORT std::vector<int> nodes() const;
  // Indices of cores, sorted. Throws RuntimeFault if there is no such chiplet or node.
  ATOLL_EXPORT std::vector<int> cores_of_chiplet(int chiplet) const;
  ATOLL_EXPORT std::vector<int> cores_of_node(int os_index) const;
};

// The part of a machine that the affinity mask and the cgroup allow: the `allowed` PUs in the
// output of `atoll topo --json` (format atoll/machine 1). On a machine without nodes all cores are
// in node 0; a package without chiplets is one chiplet.
ATOLL_EXPORT Places places_from_machine(std::string_view machine_json);

// The live machine, restricted to the CPUs that the calling thread may run on. Each call reads it
// with hwloc in a child process: tens of milliseconds.
ATOLL_EXPORT Places places_here();

// The same places with the levels between chiplets that `atoll measure` found (format atoll/profile
// 1, `inference.levels`), and with their latencies if the levels were found by latency. The level
// of two chiplets is that of the smallest measured group that contains both; a pair that the
// profile lacks stays as far as the farthest measured pair of its kind (same node, same package,
// beyond). The chiplets themselves do not change: `atoll topo
// --profile FILE --json` adds those that only a profile shows.
// Throws RuntimeFault if it is no profile, lacks levels or these CPUs, or is of an emulated CPU.
ATOLL_EXPORT Places places_with_profile(Places places, std::string_view profile_json);

// Made-up places, for tests and what-ifs: "package:2 node:2 chiplet:4 core:8 pu:2". Each number
// counts inside the one before; levels come in this order, and all but core may be omitted (1). A
// list has one count for each parent, in order: "node:2 chiplet:2,3 core:8,6,8,4,4". PUs take
// `real_cpus` in turn, repeatedly, so that many virtual cores run on a few real CPUs; if it is
// empty they are numbered from 0, for uses that start no thread. Nodes are numbered from 0 and need
// not exist on the machine: Runtime::node_map gives the nodes where memory lies. A RuntimeFault
// names the column of an error.
ATOLL_EXPORT Places synthetic_places(std::string_view text, const std::vector<int>& real_cpus);

// A part of the places. The rest is renumbered without gaps (cores, chiplets, packages; nodes keep
// their OS index); levels keep their numbers. Throws RuntimeFault if nothing is left or a core does
// not exist.
ATOLL_EXPORT Places restrict_to_cores(const Places& places, std::span<const int> cores);
ATOLL_EXPORT Places restrict_to_cpus(const Places& places, std::span<const int> cpus);

}  // namespace atl
