// AMD Zen 2 to 5: data cache fills by source, counted in each core.
//
// From Zen 3 on, event 0x44 counts every fill of L1D, including prefetches; Zen 2 has only 0x43,
// demand fills. Fills from the core's own L2 (umask 0x01) are not traffic and are left out. Zen has
// 6 counters a thread; one group of 5 leaves one for the kernel's NMI watchdog.
#pragma once

#include <array>

#include "fill_table.hpp"

namespace atl::runtime {

// Zen 2 counts another chiplet's cache under the event of its own L3 if the line's home is the same
// node: no event distinguishes them.
inline constexpr std::array kZen2Events = {
    FillEvent{FillSource::node_cache, 0x43, 0x02, 0, "ls_refills_from_sys.ls_mabresp_lcl_cache"},
    FillEvent{FillSource::remote_node, 0x43, 0x10, 0, "ls_refills_from_sys.ls_mabresp_rmt_cache"},
    FillEvent{FillSource::memory_local, 0x43, 0x08, 0, "ls_refills_from_sys.ls_mabresp_lcl_dram"},
    FillEvent{FillSource::memory_remote, 0x43, 0x40, 0, "ls_refills_from_sys.ls_mabresp_rmt_dram"},
};

inline constexpr std::array kZen3Events = {
    FillEvent{FillSource::local_chiplet, 0x44, 0x02, 0, "ls_any_fills_from_sys.int_cache"},
    FillEvent{FillSource::remote_chiplet, 0x44, 0x04, 0, "ls_any_fills_from_sys.ext_cache_local"},
    FillEvent{FillSource::remote_node, 0x44, 0x10, 0, "ls_any_fills_from_sys.ext_cache_remote"},
    FillEvent{FillSource::memory_local, 0x44, 0x08, 0, "ls_any_fills_from_sys.mem_io_local"},
    FillEvent{FillSource::memory_remote, 0x44, 0x40, 0, "ls_any_fills_from_sys.mem_io_remote"},
};

// Zen 4 gave the same bits new names, and Zen 5 kept them.
inline constexpr std::array kZen4Events = {
    FillEvent{FillSource::local_chiplet, 0x44, 0x02, 0, "ls_any_fills_from_sys.local_ccx"},
    FillEvent{FillSource::remote_chiplet, 0x44, 0x04, 0, "ls_any_fills_from_sys.near_cache"},
    FillEvent{FillSource::remote_node, 0x44, 0x10, 0, "ls_any_fills_from_sys.far_cache"},
    FillEvent{FillSource::memory_local, 0x44, 0x08, 0, "ls_any_fills_from_sys.dram_io_near"},
    FillEvent{FillSource::memory_remote, 0x44, 0x40, 0, "ls_any_fills_from_sys.dram_io_far"},
};

inline constexpr FillTable kZen2{
    "AMD Zen 2", "demand fills of L1D",
    "Linux tools/perf/pmu-events/arch/x86/amdzen2/memory.json (PMCx043)", kZen2Events};
inline constexpr FillTable kZen3{
    "AMD Zen 3", "fills of L1D, prefetches included",
    "Linux tools/perf/pmu-events/arch/x86/amdzen3/memory.json (PMCx044)", kZen3Events};
inline constexpr FillTable kZen4{
    "AMD Zen 4", "fills of L1D, prefetches included",
    "Linux tools/perf/pmu-events/arch/x86/amdzen4/cache.json (PMCx044)", kZen4Events};
inline constexpr FillTable kZen5{
    "AMD Zen 5", "fills of L1D, prefetches included",
    "Linux tools/perf/pmu-events/arch/x86/amdzen5/load-store.json (PMCx044)", kZen4Events};

}  // namespace atl::runtime
