// Where places get their machine from: an `atoll/machine` JSON, of a file or of the live system.
//
// The live one comes from the topology library, which is loaded only here: a launch with
// plain numactl flags must not pay for hwloc.
#pragma once

#include <string>
#include <string_view>

#include "cpu_set.hpp"
#include "places.hpp"

namespace atl::exec {

// Reads what places need from an `atoll/machine` JSON (version 1). `where` names it in faults.
// `usable` stands for 'all'; CPUs of it that the machine does not have are left out.
// Throws Fault when the text is not such a machine.
[[nodiscard]] PlaceTopology parse_machine(std::string_view json, const std::string& where,
                                          const CpuSet& usable);

// The whole file. Throws Fault when it cannot be read.
[[nodiscard]] std::string read_machine_file(const std::string& path);

// The live machine's JSON, I/O devices left out. Throws Fault when the topology library is not
// where it was installed, or cannot read the machine.
[[nodiscard]] std::string live_machine();

}  // namespace atl::exec
