// The machine, read once, by hwloc: the topology step's whole interface.
//
// `discover` gives the JSON of `atoll/machine` 1; src/atoll/schema/machine.py is the contract
// (fields, their order, their meaning). hwloc: Broquedis et al., "hwloc: a Generic Framework
// for Managing Hardware Affinities in HPC Applications", PDP 2010.
//
// What it promises
//  - `summary` holds hwloc's own counts for the same input (what hwloc-info shows by default):
//    objects left by the cgroup, CPU-less NUMA nodes included, 0 where there are none. An
//    affinity mask does not change it; `allowed` tells what mask and cgroup leave together.
//  - hwloc runs in a child process. Whatever it does there (abort, crash, hang, eat memory,
//    print, set bindings or variables) becomes one Fault here, or nothing at all.
//  - Where hwloc sees no Core objects, `cores` holds one per PU so that planning works (warning
//    cores-assumed), and summary.cores stays 0. Without Package objects `package` is null.
//
// Where chiplets come from: per package (the machine, where there are no packages), the first
// of L3 domains, dies and sub-NUMA nodes that gives a set of at least two cores smaller than
// the package. Sources like a VM's L3 per CPU give none, by that rule; and where there are no
// packages, NUMA nodes give none. The user's word and profiles enter elsewhere, in Python.
//
// Warning codes, stable:
//   l3-per-cpu             every L3 serves one PU: a VM that does not describe its caches
//   l3-per-core            every L3 serves one core (POWER8 slices): no islands
//   l3-huge-few-cpus       a package's only L3 is over 16 MiB a core: a VM, a slice of a larger CPU
//   l3-as-numa             AMD BIOS 'L3 as NUMA': nodes that are no memory controllers
//   core-outside-chiplets  some cores are in no chiplet though others are
//   memory-mismatch        hwloc's memory and MemTotal differ by more than 5 %
//   no-memory-info         no NUMA node tells its memory size
//   cores-assumed          no Core objects; each PU counts as a core
//   hwloc-complaint        hwloc itself reported that the input is inconsistent
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#define ATOLL_EXPORT __attribute__((visibility("default")))

// The namespace cannot be `atoll`: stdlib.h declares a function of that name.
namespace atl::topology {

// A topology that cannot be read or contradicts itself; one line that says what to do.
class ATOLL_EXPORT Fault : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A fault of this library, not of its input: a crash after hwloc had accepted the input.
class ATOLL_EXPORT OwnFault : public Fault {
 public:
  using Fault::Fault;
};

// `kind`: live, xml, synthetic, sysfs. `where`: the XML file, the synthetic string, the captured
// folder; empty for live. Throws Fault.
ATOLL_EXPORT std::string discover(std::string_view kind, const std::string& where);

// As `discover("xml", where)` for a file whose bytes the caller already has.
ATOLL_EXPORT std::string discover_xml(const std::string& content, const std::string& where);

}  // namespace atl::topology

// For callers that dlopen this library so as not to pay for it when they need no topology.
// Returns 0 and the JSON, or 1 and the one-line message, in `*text` (free it with free()).
extern "C" ATOLL_EXPORT int atoll_topology_discover(const char* kind, const char* where,
                                                    char** text);
