// Reads the machine that places refer to: an `atoll/machine` JSON from a file or the live system.
//
// The live machine comes from the kernel's own sets of CPUs if they have all that the places need,
// else from the topology library. Only this file loads that library, so that other launches do not
// pay for hwloc.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "cpu_set.hpp"
#include "places.hpp"

namespace atl::exec {

// Reads what places need from an `atoll/machine` JSON (version 1). `where` names the source in
// messages. `usable` is the meaning of 'all', less the CPUs that the machine does not have.
// Throws Fault if the text is not such a machine.
[[nodiscard]] PlaceTopology parse_machine(std::string_view json, const std::string& where,
                                          const CpuSet& usable);

// Returns the whole file. Throws Fault if it cannot be read.
[[nodiscard]] std::string read_machine_file(const std::string& path);

// Returns the live machine's packages, nodes, dies, L3 domains and chiplets, read without hwloc.
// Returns nothing if `levels` has others, or if only hwloc can read this machine.
[[nodiscard]] std::optional<PlaceTopology> quick_machine(std::span<const Level> levels,
                                                         const CpuSet& usable);

// Returns the live machine's JSON, without I/O devices. Throws Fault if the topology library is
// missing from this installation or cannot read the machine.
[[nodiscard]] std::string live_machine();

}  // namespace atl::exec
