// Places: sets of CPUs named by topology object, in the location syntax of hwloc(7).
//
//   core:2-3            the third and fourth core (logical indices, over the whole machine)
//   package:0.l3:1      the second L3 inside the first package
//   chiplet:3           Atoll's own object type, all others are hwloc's
//   0xff  0x1,0x0       CPU sets by OS index, all, root
//   ~PLACE xPLACE ^PLACE   subtract, intersect, exclusive or; without a prefix: add
//
// Unlike in hwloc, an index may be a list (core:0,4-5). An object that does not exist is a fault
// (hwloc-calc warns and continues), because a launcher must not start on fewer CPUs than the user
// asked for. Devices (os=, pci=), groups and numeric depths are not places.
//
// Pure: the caller passes the machine as a PlaceTopology. The resulting CPUs are OS indices.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cpu_set.hpp"

namespace atl::exec {

enum class Level : std::size_t {
  kMachine,
  kPackage,
  kDie,
  kNumaNode,
  kL1,
  kL2,
  kL3,
  kL4,
  kL5,
  kL1i,
  kL2i,
  kL3i,
  kCore,
  kPu,
  kChiplet,
};
inline constexpr std::size_t kLevels = 15;

struct Object {
  CpuSet cpus;
  // For a NUMA node without CPUs: the CPUs near it (those of its package, else all). They decide
  // whether the node lies inside another object.
  CpuSet near_cpus = {};
};

// What places need to know about a machine: its objects by level, in logical order.
struct PlaceTopology {
  std::array<std::vector<Object>, kLevels> levels;
  CpuSet usable;  // the meaning of 'all' and 'root': the CPUs that this process may use

  [[nodiscard]] std::vector<Object>& operator[](Level level) {
    return levels[static_cast<std::size_t>(level)];
  }
  [[nodiscard]] const std::vector<Object>& operator[](Level level) const {
    return levels[static_cast<std::size_t>(level)];
  }
};

// Whether an operand has the form of a place (and is not the command). It need not be valid.
[[nodiscard]] bool looks_like_place(std::string_view operand);

// Returns the levels that places name. Throws Fault for an unknown type or a malformed index.
[[nodiscard]] std::vector<Level> levels_of(std::span<const std::string> places);

// Returns the CPUs of several places, applied from left to right to the empty set. Throws Fault
// for an unknown type, a malformed index or an object that does not exist.
[[nodiscard]] CpuSet resolve_places(const PlaceTopology& topology,
                                    std::span<const std::string> places);

}  // namespace atl::exec
