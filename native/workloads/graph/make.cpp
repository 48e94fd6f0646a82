#include "graph/make.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>

#include "base/available.hpp"
#include "graph/answer.hpp"
#include "graph/read.hpp"
#include "graph/relabel.hpp"

namespace atl::kernels {
namespace {

// Whether a flag, which not all kernels have, has this value.
bool is(const Settings& settings, const char* flag, const char* value) {
  const auto found = settings.all().find(flag);
  return found != settings.all().end() && found->second == value;
}

// The most that is there at a time. Rows of `directions` edges are built from a list of `edges`,
// and perhaps from those rows once more, under new names. Then the kernel works on them.
std::uint64_t peak_bytes(std::uint64_t edges, std::uint64_t directions, std::uint64_t vertices,
                         const Settings& settings, const GraphNeeds& needs) {
  const std::uint64_t weight = needs.weights ? sizeof(Weight) : 0;
  const std::uint64_t list = edges * (sizeof(Edge) + weight);
  const std::uint64_t rows =
      directions * (sizeof(Vertex) + weight) + vertices * 2 * sizeof(std::uint64_t);
  // Bits of the weights that are moved with entries: any in a file; others are there for
  // relabelling.
  const bool relabel = settings.text("relabel") == "yes";
  const int weight_bits = !needs.weights                          ? 0
                          : is_graph_file(settings.text("graph")) ? 31
                          : relabel                               ? 8
                                                                  : 0;
  const std::uint64_t entries = building_bytes(vertices, directions, weight_bits);
  const std::uint64_t relabelling =
      relabel ? rows + directions * sizeof(Vertex) + 2 * vertices * sizeof(std::uint64_t) : 0;
  const std::uint64_t of_edge =
      needs.of_edge + (is(settings, "variant", "messages") ? needs.of_message : 0);
  const std::uint64_t kernel = vertices * needs.of_vertex + directions * of_edge;
  const std::uint64_t made = rows + entries + std::max(list, relabelling);
  if (!is(settings, "rows", "compressed")) return std::max(made, rows + kernel);
  const std::uint64_t compressed =
      compressed_bytes(vertices, directions) + compressed_bytes(vertices, 0);  // of both directions
  return std::max({made, rows + compressed, compressed + kernel});
}

EdgeList edges_of_file(Team& team, const Memory& memory, const Settings& settings,
                       const std::string& path, const GraphNeeds& needs) {
  std::uint64_t directions = 0;
  const auto require = [&](std::uint64_t edges, std::uint64_t vertices, std::uint64_t held) {
    const std::uint64_t needed = peak_bytes(edges, directions, vertices, settings, needs);
    const std::uint64_t available = base::available_bytes() + held;
    if (needed <= available) return;
    throw UsageFault(path + ": its graph needs " + gibibytes(needed) + " of memory, and " +
                     gibibytes(available) + " are available; take a smaller graph");
  };
  const auto before = [&](std::uint64_t edges, std::uint64_t of_rows, std::uint64_t vertices) {
    directions = of_rows;
    require(edges, vertices, 0);
  };
  EdgeList list = read_edges(team, memory, path, {needs.weights, before});
  const std::uint64_t held =
      list.edges.size() * sizeof(Edge) + (list.weights ? list.weights->size() * sizeof(Weight) : 0);
  require(list.edges.size(), list.vertices, held);  // now that their number is known
  return list;
}

EdgeList make_edges(Team& team, const Settings& settings, const Conditions& conditions,
                    const GraphNeeds& needs) {
  const std::string& graph = settings.text("graph");
  const Memory& memory = conditions.memory;
  if (is_graph_file(graph)) return edges_of_file(team, memory, settings, graph, needs);
  const int scale = static_cast<int>(settings.number("scale"));
  const std::uint64_t degree = settings.number("degree");
  if (graph == "kronecker") return kronecker_edges(team, memory, scale, degree, conditions.seed);
  if (graph == "uniform") return uniform_edges(team, memory, scale, degree, conditions.seed);
  throw UsageFault("--graph " + graph +
                   ": not kronecker, uniform or a file .el, .wel, .mtx, .sg or .wsg");
}

}  // namespace

std::vector<Parameter> graph_parameters(const GraphNeeds& needs) {
  const auto generated = [](const Values& given) { return !is_graph_file(given.at("graph")); };
  std::vector<Parameter> parameters = {
      {"graph", "kronecker", "kronecker, uniform, or a file: .el, .wel, .mtx, .sg or .wsg"},
      {"scale", "20", "a generated graph has 2^scale vertices", 1, 31, {}, generated},
      {"degree", "16", "and this many edges for each", 1, 1 << 16, {}, generated},
      {"relabel", "no", "number vertices by descending degree", 0, 0, {"no", "yes"}},
  };
  if (!needs.undirected) {
    parameters.push_back({"directed", "no", "keep each edge one way only", 0, 0, {"no", "yes"}});
  }
  if (needs.compressible) {
    parameters.push_back({"rows",
                          "plain",
                          "4 bytes for each vertex in a row, or fewer, which take time to read",
                          0,
                          0,
                          {"plain", "compressed"}});
  }
  return parameters;
}

std::uint64_t graph_bytes(const Settings& settings, const GraphNeeds& needs) {
  if (is_graph_file(settings.text("graph"))) return 0;
  const std::uint64_t vertices = std::uint64_t{1} << settings.number("scale");
  const std::uint64_t edges = settings.number("degree") * vertices;
  return peak_bytes(edges, 2 * edges, vertices, settings, needs);
}

Graph make_graph(Team& team, const Settings& settings, Conditions& conditions,
                 const GraphNeeds& needs) {
  check_save(settings);
  const auto begin = std::chrono::steady_clock::now();
  std::optional<EdgeList> list = make_edges(team, settings, conditions, needs);
  Graph graph = build_graph(team, conditions.memory, *list,
                            {.directed = is(settings, "directed", "yes"),
                             .weights = needs.weights,
                             .incoming = needs.incoming,
                             .seed = conditions.seed});
  const bool one_way = is(settings, "directed", "yes") && !list->symmetric;
  const bool empty = list->edges.size() == 0;
  list.reset();
  if (graph.edges == 0) {
    throw UsageFault("--graph " + settings.text("graph") +
                     (empty ? ": has no edges; kernels need some"
                            : ": no edges but from a vertex to itself; kernels need others"));
  }
  if (settings.text("relabel") == "yes") {
    if (one_way) throw UsageFault("--relabel yes: the graph must be undirected");
    graph = relabelled(team, conditions.memory, graph);
  }
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
  conditions.make_s = passed.count();
  return graph;
}

}  // namespace atl::kernels
