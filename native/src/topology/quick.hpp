// Reads a live machine quickly: packages, NUMA nodes, dies, L3 domains and cores from the kernel's
// own sets of CPUs, without hwloc.
//
// hwloc reads about 40 files per CPU, which takes 10 ms and more for 256 CPUs. If the machine is
// regular, a few files per object have the same answer. `read_quickly` returns nothing for any
// other machine, for example one without L3 domains, with memory that has no CPUs, or with
// distances by which hwloc could form groups in another order. The caller then asks hwloc.
// chiplets.cpp has the rule for chiplets in both cases, and tests compare the two.
#pragma once

#include <optional>
#include <string>

#include "model.hpp"

namespace atl::topology {

// The CPUs of `packages`, `nodes`, `dies`, `l3`, `cores` and `chiplets`, in hwloc's order except
// for cores within an L3. Other fields stay empty. `root` stands for "/" ("" is this system).
std::optional<Machine> read_quickly(const std::string& root);

}  // namespace atl::topology
