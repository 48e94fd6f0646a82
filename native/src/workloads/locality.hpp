// Which part of this process's memory is near its threads, estimated from pages.
//
// Counters of memory accesses (numa-query-tuning, table III) need hardware that few machines let a
// program read. The estimate takes each running thread to read all pages alike: the share of the
// pages on its node, as a mean over the threads. `atoll inspect` estimates in the same way.
#pragma once

#include <cstdint>
#include <functional>
#include <istream>
#include <optional>
#include <vector>

namespace atl::workloads {

// Bytes on each memory node in the text of /proc/PID/numa_maps, by node, without pages of files.
// Pure.
[[nodiscard]] std::vector<std::uint64_t> bytes_by_node(std::istream& numa_maps);

// The mean of the nodes' shares of all bytes; `nodes`: that of each running thread. nullopt without
// pages or threads. Pure.
[[nodiscard]] std::optional<double> local_share(const std::vector<std::uint64_t>& bytes,
                                                const std::vector<int>& nodes);

// Whether there is anything to tell.
[[nodiscard]] bool several_memory_nodes();

// Calls `work`, which usually takes `usual_s` seconds, and looks twice, after a quarter and a half
// of that, from a thread of its own; the last look counts. nullopt if `work` ends before the first.
[[nodiscard]] std::optional<double> local_share_during(const std::function<void()>& work,
                                                       double usual_s);

}  // namespace atl::workloads
