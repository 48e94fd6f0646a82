// Which events of a CPU count fills by source. Data with its sources; no code beyond this.
//
// Cited per table: the vendor's event list as the Linux kernel carries it (tools/perf/pmu-events/
// arch/x86/FOLDER/FILE), where the vendors themselves maintain it. A source that no event counts is
// left out, and then the profile says n/a.
#pragma once

#include <cstdint>
#include <span>

#include "atoll/runtime/profile.hpp"

namespace atl::runtime {

struct FillEvent {
  FillSource source;  // several events of one source add up
  std::uint8_t event;
  std::uint8_t umask;
  // Events of one group are counted together or not at all; a group must fit into the counters
  // that its events may use.
  std::uint8_t group;
  const char* name;  // as the cited document has it
};

struct FillTable {
  const char* cpu;
  const char* fills_of;  // what is counted
  const char* document;  // where the encodings stand
  std::span<const FillEvent> events;
};

inline constexpr std::size_t kMaxFillGroups = 2;
inline constexpr std::size_t kMaxGroupEvents = 6;

}  // namespace atl::runtime
