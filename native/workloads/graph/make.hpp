// The graphs of the workloads: their flags, what memory they need, and how they are made.
#pragma once

#include <chrono>
#include <cstdint>
#include <utility>
#include <vector>

#include "graph/build.hpp"
#include "graph/compressed_rows.hpp"
#include "graph/graph.hpp"
#include "team.hpp"
#include "workload.hpp"

namespace atl::kernels {

// --graph, --scale, --degree, --relabel; --directed unless the kernel needs undirected graphs; and
// --rows if it reads both kinds.
[[nodiscard]] std::vector<Parameter> graph_parameters(const GraphNeeds& needs = {});

// Bytes of memory at the peak, when a generated graph is made or the kernel works on it. 0 for a
// file, for which make_graph asks itself, when it knows how many edges there are.
[[nodiscard]] std::uint64_t graph_bytes(const Settings& settings, const GraphNeeds& needs);

// Within Team::run. Sets conditions.make_s. Throws UsageFault for a file that cannot be used, for
// one whose graph does not fit into memory, and for a graph without edges.
[[nodiscard]] Graph make_graph(Team& team, const Settings& settings, Conditions& conditions,
                               const GraphNeeds& needs);

// The result of run(graph), whose rows are what --rows wants. Compressing is part of making.
template <class Run>
Result on_rows(Team& team, const Settings& settings, Conditions& conditions,
               const GraphNeeds& needs, Run&& run) {
  Graph graph = make_graph(team, settings, conditions, needs);
  if (settings.text("rows") == "plain") return run(graph);
  const auto begin = std::chrono::steady_clock::now();
  const CompressedGraph small = compressed(team, conditions.memory, std::move(graph));
  conditions.make_s +=
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return run(small);
}

// Of its rows and where they begin, without weights.
template <class AnyRows>
double bytes_per_entry(const GraphOf<AnyRows>& graph) {
  const std::uint64_t bytes = graph.out.bytes() + (graph.in ? graph.in->bytes() : 0);
  const std::uint64_t entries = graph.out.entries() + (graph.in ? graph.in->entries() : 0);
  return static_cast<double>(bytes) / static_cast<double>(entries);
}

}  // namespace atl::kernels
