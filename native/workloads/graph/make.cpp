#include "graph/make.hpp"

#include <chrono>
#include <string>

#include "graph/relabel.hpp"

namespace atl::kernels {
namespace {

bool directed(const Settings& settings) {
  const auto found = settings.all().find("directed");
  return found != settings.all().end() && found->second == "yes";
}

EdgeList make_edges(Team& team, const Memory& memory, const Settings& settings,
                    std::uint64_t seed) {
  const int scale = static_cast<int>(settings.number("scale"));
  const std::uint64_t degree = settings.number("degree");
  const std::string& graph = settings.text("graph");
  if (graph == "kronecker") return kronecker_edges(team, memory, scale, degree, seed);
  if (graph == "uniform") return uniform_edges(team, memory, scale, degree, seed);
  throw UsageFault("--graph " + graph + ": not yet");
}

}  // namespace

std::vector<Parameter> graph_parameters(const GraphNeeds& needs) {
  std::vector<Parameter> parameters = {
      {"graph", "kronecker", "kronecker, uniform, or a file: .el, .wel, .mtx, .sg or .wsg"},
      {"scale", "20", "a generated graph has 2^scale vertices", 1, 31},
      {"degree", "16", "and this many edges for each", 1, 1 << 16},
      {"relabel", "no", "number vertices by descending degree", 0, 0, {"no", "yes"}},
  };
  if (!needs.undirected) {
    parameters.push_back({"directed", "no", "keep each edge one way only", 0, 0, {"no", "yes"}});
  }
  return parameters;
}

std::uint64_t graph_bytes(const Settings& settings, const GraphNeeds& needs) {
  const std::uint64_t vertices = std::uint64_t{1} << settings.number("scale");
  const std::uint64_t edges = settings.number("degree") * vertices;
  const std::uint64_t weight = needs.weights ? sizeof(Weight) : 0;
  // The edges, entries of 8 bytes for both of their directions, and the rows.
  return edges * (sizeof(Edge) + 2 * (8 + sizeof(Vertex) + weight)) + vertices * 16;
}

Graph make_graph(Team& team, const Settings& settings, Conditions& conditions,
                 const GraphNeeds& needs) {
  const auto begin = std::chrono::steady_clock::now();
  const EdgeList list = make_edges(team, conditions.memory, settings, conditions.seed);
  Graph graph = build_graph(team, conditions.memory, list,
                            {.directed = directed(settings),
                             .weights = needs.weights,
                             .incoming = needs.incoming,
                             .seed = conditions.seed});
  if (settings.text("relabel") == "yes") {
    if (directed(settings)) throw UsageFault("--relabel yes: not of a directed graph");
    graph = relabelled(team, conditions.memory, graph);
  }
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
  conditions.make_s = passed.count();
  return graph;
}

}  // namespace atl::kernels
