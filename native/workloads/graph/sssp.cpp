#include "graph/sssp.hpp"

#include <algorithm>
#include <atomic>
#include <optional>
#include <string>
#include <utility>

#include "graph/answer.hpp"
#include "graph/delta_stepping.hpp"
#include "graph/make.hpp"
#include "graph/messages.hpp"
#include "graph/sources.hpp"

namespace atl::kernels {
namespace {

template <class Distance>
std::optional<Distances> distances(Team& team, const Memory& memory, const Graph& graph,
                                   Vertex source, std::uint64_t delta) {
  Array<Distance> made = make_array<Distance>(memory, graph.vertices);
  DeltaStepping<Distance> search(team, graph, delta, {made.data(), made.size()});
  if (!search.run(source)) return std::nullopt;
  return made;
}

template <class Distance>
void verify(Team& team, const Graph& graph, Vertex source, const Array<Distance>& distance) {
  std::atomic<Vertex> wrong{kNone};
  team.loop(graph.vertices, 0, [&](std::size_t first, std::size_t last) {
    const Rows& rows = graph.incoming();
    for (auto v = static_cast<Vertex>(first); v < last; ++v) {
      std::uint64_t best = v == source ? 0 : kFar<std::uint64_t>;
      const auto from = rows.of(v);
      const auto weight = rows.weights_of(v);
      for (std::size_t at = 0; at < from.size(); ++at) {
        if (distance[from[at]] == kFar<Distance>) continue;
        best = std::min<std::uint64_t>(best,
                                       distance[from[at]] + static_cast<std::uint64_t>(weight[at]));
      }
      const bool far = distance[v] == kFar<Distance>;
      if (best != (far ? kFar<std::uint64_t> : distance[v])) {
        wrong.store(v, std::memory_order_relaxed);
      }
    }
  });
  const Vertex v = wrong.load(std::memory_order_relaxed);
  if (v == kNone) return;
  throw WrongAnswer("sssp: vertex " + std::to_string(v) +
                    " has not the least distance of its neighbours plus an edge");
}

}  // namespace

std::uint64_t distance_of(const Distances& distances, Vertex v) {
  if (const auto* narrow = std::get_if<Array<std::uint32_t>>(&distances)) {
    return (*narrow)[v] == kFar<std::uint32_t> ? kFar<std::uint64_t> : (*narrow)[v];
  }
  return std::get<Array<std::uint64_t>>(distances)[v];
}

Distances sssp(Team& team, const Memory& memory, const Graph& graph, Vertex source,
               std::uint64_t delta) {
  std::optional<Distances> found = distances<std::uint32_t>(team, memory, graph, source, delta);
  if (!found) found = distances<std::uint64_t>(team, memory, graph, source, delta);
  return std::move(*found);
}

Distances sssp_by_messages(Team& team, const Memory& memory, const Graph& graph, Vertex source) {
  Array<std::uint64_t> distance = make_array<std::uint64_t>(memory, graph.vertices);
  team.loop(graph.vertices, 0, [&](std::size_t first, std::size_t last) {
    std::fill(&distance[first], &distance[first] + (last - first), kFar<std::uint64_t>);
  });
  distance[source] = 0;
  propagate<std::uint64_t>(
      team, graph.vertices, std::span(&source, 1),
      [&](Vertex v, auto&& send) {
        const auto to = graph.out.of(v);
        const auto weight = graph.out.weights_of(v);
        for (std::size_t at = 0; at < to.size(); ++at) {
          send(to[at], distance[v] + static_cast<std::uint64_t>(weight[at]));
        }
      },
      [&](Vertex v, std::uint64_t reached) {
        if (reached >= distance[v]) return false;
        distance[v] = reached;
        return true;
      });
  return distance;
}

std::uint64_t default_delta(const Graph& graph) {
  constexpr std::uint64_t kSample = 4096;
  const Array<Weight>& weight = *graph.out.weight;
  const std::uint64_t step = weight.size() / kSample + 1;
  std::uint64_t sum = 0;
  std::uint64_t count = 0;
  for (std::uint64_t at = 0; at < weight.size(); at += step, ++count) {
    sum += static_cast<std::uint64_t>(weight[at]);
  }
  return std::max<std::uint64_t>(count == 0 ? 0 : sum / count / 64, 1);
}

void verify_sssp(Team& team, const Graph& graph, Vertex source, const Distances& distances) {
  std::visit([&](const auto& distance) { verify(team, graph, source, distance); }, distances);
}

namespace {

constexpr GraphNeeds kSsspNeeds = {
    .weights = true, .incoming = true, .of_vertex = 64, .of_message = 32};

Result run_sssp(Team& team, const Settings& settings, Conditions& conditions) {
  const Graph graph = make_graph(team, settings, conditions, kSsspNeeds);
  const std::uint64_t given = settings.number("delta");
  const std::uint64_t delta = given != 0 ? given : default_delta(graph);
  const bool messages = settings.text("variant") == "messages";
  std::optional<Distances> found;
  Vertex source = 0;
  double edges = 0;
  double reached = 0;
  std::uint64_t farthest = 0;
  time_runs(
      conditions,
      [&](int run) {
        source = pick_source(graph, conditions.seed, run);
        found.reset();
      },
      [&](int) {
        found = messages ? sssp_by_messages(team, conditions.memory, graph, source)
                         : sssp(team, conditions.memory, graph, source, delta);
      },
      [&](int) {
        verify_sssp(team, graph, source, *found);
        reached = 0;
        farthest = 0;
        for (Vertex v = 0; v < graph.vertices; ++v) {
          const std::uint64_t distance = distance_of(*found, v);
          if (distance == kFar<std::uint64_t>) continue;
          farthest = std::max(farthest, distance);
          edges += static_cast<double>(graph.out.degree(v));
          ++reached;
        }
      });
  save_answer(settings, graph.vertices, [&](Vertex v, std::string& line) {
    const std::uint64_t distance = distance_of(*found, v);
    line += distance == kFar<std::uint64_t> ? "-" : std::to_string(distance);
  });
  const double runs = conditions.runs;
  return {.work = edges / (graph.in ? runs : 2 * runs),
          .figures = {{"vertices", static_cast<double>(graph.vertices)},
                      {"edges", static_cast<double>(graph.edges)},
                      {"source", static_cast<double>(source)},
                      {"reached_vertices", reached},
                      {"farthest", static_cast<double>(farthest)},
                      {"delta", static_cast<double>(delta)}}};
}

std::vector<Parameter> sssp_parameters() {
  std::vector<Parameter> all = with_save(with_variant(graph_parameters(kSsspNeeds)));
  all.push_back({"delta", "0", "width of a bucket; 0: 1/64 of the mean weight", 0, 1ULL << 31});
  return all;
}

}  // namespace

const Workload& sssp_workload() {
  static const Workload workload = {
      "sssp",
      "shortest paths from random vertices, by delta-stepping",
      "edges",
      sssp_parameters(),
      [](const Settings& settings, int) { return graph_bytes(settings, kSsspNeeds); },
      run_sssp,
  };
  return workload;
}

}  // namespace atl::kernels
