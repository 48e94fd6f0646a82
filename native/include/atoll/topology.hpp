// Reads the machine once with hwloc. This is the whole interface of the topology library.
//
// `discover` returns the JSON of `atoll/machine` 1. src/atoll/schema/machine.py defines its
// fields, their order and their meaning. hwloc: Broquedis et al., "hwloc: a Generic Framework
// for Managing Hardware Affinities in HPC Applications", PDP 2010.
//
// Guarantees
//  - `summary` has hwloc's own counts for the same input (hwloc-info's defaults): objects that
//    the cgroup leaves, including NUMA nodes without CPUs; 0 if there are none. An affinity mask
//    does not change it; `allowed` reports what mask and cgroup leave together.
//  - hwloc runs in a child process. Whatever it does there (abort, crash, hang, exhaust memory,
//    print, set bindings or variables) causes at most one Fault here.
//  - Objects that a restriction left without CPUs stay in `packages`, `dies`, `nodes` and `l3`.
//    They have no PUs, and count in `summary`. `cores` has only cores with PUs.
//  - If hwloc reports no Core objects, `cores` has one per PU so that planning works (warning
//    cores-assumed), and summary.cores stays 0. Without Package objects `package` is null.
//
// Chiplets: in each package (or the machine, if it has no packages), the first of L3 domains,
// dies and sub-NUMA nodes whose sets have at least two cores and are smaller than the package.
// By that rule a VM's L3 per CPU gives no chiplets, and neither do NUMA nodes without packages.
// The user's own chiplets and those of profiles are added in Python.
//
// Warning codes, stable:
//   without-cpus           objects whose CPUs a cgroup, a mask or a restriction took away
//   l3-per-cpu             every L3 serves one PU: a VM that does not describe its caches
//   l3-per-core            every L3 serves one core (POWER8 slices): no islands
//   l3-huge-few-cpus       a package's only L3 is over 16 MiB a core: a VM, a slice of a larger CPU
//   l3-as-numa             AMD BIOS 'L3 as NUMA': the nodes are not memory controllers
//   core-outside-chiplets  some cores are in no chiplet although others are
//   memory-mismatch        hwloc's memory and MemTotal differ by more than 5 %
//   no-memory-info         no NUMA node reports its memory size
//   cores-assumed          no Core objects; each PU counts as a core
//   hwloc-complaint        hwloc reported that the input is inconsistent
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#define ATOLL_EXPORT __attribute__((visibility("default")))

// The namespace cannot be `atoll`: stdlib.h declares a function of that name.
namespace atl::topology {

// The topology cannot be read or contradicts itself. The message is one line that says what to do.
class ATOLL_EXPORT Fault : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A bug in this library, not its input: for example a crash after hwloc had accepted the input.
class ATOLL_EXPORT OwnFault : public Fault {
 public:
  using Fault::Fault;
};

// Returns the machine as JSON. `kind`: live, xml, synthetic or sysfs. `where`: the XML file, the
// synthetic string or the captured folder; empty for live. Throws Fault.
ATOLL_EXPORT std::string discover(std::string_view kind, const std::string& where);

// Same as `discover("xml", where)`, for a file that the caller has already read.
ATOLL_EXPORT std::string discover_xml(const std::string& content, const std::string& where);

}  // namespace atl::topology

// For callers that load this library with dlopen only when they need a topology. Returns 0 with
// the JSON in `*text`, or 1 with the one-line message in `*text`. Free `*text` with free().
extern "C" ATOLL_EXPORT int atoll_topology_discover(const char* kind, const char* where,
                                                    char** text);
