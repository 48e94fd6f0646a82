// The graphs of the workloads: their flags, what memory they need, and how they are made.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/build.hpp"
#include "graph/graph.hpp"
#include "team.hpp"
#include "workload.hpp"

namespace atl::kernels {

// --graph, --scale, --degree, --relabel and, unless the kernel needs undirected graphs, --directed.
[[nodiscard]] std::vector<Parameter> graph_parameters(const GraphNeeds& needs = {});

// Bytes of memory at the peak, when a generated graph is made or the kernel works on it. 0 for a
// file, for which make_graph asks itself, when it knows how many edges there are.
[[nodiscard]] std::uint64_t graph_bytes(const Settings& settings, const GraphNeeds& needs);

// Within Team::run. Sets conditions.make_s. Throws UsageFault for a file that cannot be used, for
// one whose graph does not fit into memory, and for a graph without edges.
[[nodiscard]] Graph make_graph(Team& team, const Settings& settings, Conditions& conditions,
                               const GraphNeeds& needs);

}  // namespace atl::kernels
