// Intel Skylake-SP to Granite Rapids: retired loads by source, counted in each core.
//
// The socket has one L3 for all of its tiles, so no event distinguishes near and far parts: a hit
// is `node_cache`, and local and remote chiplet are n/a. Only retired loads are counted, not stores
// and prefetches; the offcore response events for these need a model-specific register each, of
// which there are two. Local means the socket: with sub-NUMA clusters the neighbour cluster's
// memory is local, too. Persistent and CXL memory are not counted.
//
// All events use counters 0 to 3, of which the kernel's NMI watchdog may occupy one: groups of 3
// and 2. With hyper-threads on Skylake-SP the two groups take turns; the profile then reports
// scaled counts.
#pragma once

#include <array>

#include "fill_table.hpp"

namespace atl::runtime {

// The same from Skylake-SP on, checked in each of the documents below.
inline constexpr std::array kIntelEvents = {
    FillEvent{FillSource::node_cache, 0xd1, 0x04, 0, "MEM_LOAD_RETIRED.L3_HIT"},
    FillEvent{FillSource::memory_local, 0xd3, 0x01, 0, "MEM_LOAD_L3_MISS_RETIRED.LOCAL_DRAM"},
    FillEvent{FillSource::memory_remote, 0xd3, 0x02, 0, "MEM_LOAD_L3_MISS_RETIRED.REMOTE_DRAM"},
    FillEvent{FillSource::remote_node, 0xd3, 0x04, 1, "MEM_LOAD_L3_MISS_RETIRED.REMOTE_HITM"},
    FillEvent{FillSource::remote_node, 0xd3, 0x08, 1, "MEM_LOAD_L3_MISS_RETIRED.REMOTE_FWD"},
};

inline constexpr FillTable kSkylakeSp{"Intel Skylake-SP", "retired loads",
                                      "Linux tools/perf/pmu-events/arch/x86/skylakex/cache.json",
                                      kIntelEvents};
inline constexpr FillTable kCascadeLake{
    "Intel Cascade Lake", "retired loads",
    "Linux tools/perf/pmu-events/arch/x86/cascadelakex/cache.json", kIntelEvents};
inline constexpr FillTable kIceLakeSp{"Intel Ice Lake-SP", "retired loads",
                                      "Linux tools/perf/pmu-events/arch/x86/icelakex/cache.json",
                                      kIntelEvents};
inline constexpr FillTable kSapphireRapids{
    "Intel Sapphire Rapids", "retired loads",
    "Linux tools/perf/pmu-events/arch/x86/sapphirerapids/cache.json", kIntelEvents};
inline constexpr FillTable kEmeraldRapids{
    "Intel Emerald Rapids", "retired loads",
    "Linux tools/perf/pmu-events/arch/x86/emeraldrapids/cache.json", kIntelEvents};
inline constexpr FillTable kGraniteRapids{
    "Intel Granite Rapids", "retired loads",
    "Linux tools/perf/pmu-events/arch/x86/graniterapids/cache.json", kIntelEvents};

}  // namespace atl::runtime
