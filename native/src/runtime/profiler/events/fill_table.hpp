// Which events of a CPU count fills by source: data and its sources, no code.
//
// Each table cites the vendor's event list in the Linux kernel (tools/perf/pmu-events/arch/x86/
// FOLDER/FILE), which the vendors themselves maintain. A source that no event counts is omitted;
// the profile then reports n/a.
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
  const char* name;  // as in the cited document
};

struct FillTable {
  const char* cpu;
  const char* fills_of;  // what is counted
  const char* document;  // the source of the encodings
  std::span<const FillEvent> events;
};

inline constexpr std::size_t kMaxFillGroups = 2;
inline constexpr std::size_t kMaxGroupEvents = 6;

}  // namespace atl::runtime
