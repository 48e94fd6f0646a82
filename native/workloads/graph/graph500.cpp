#include "graph/graph500.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "graph/bfs.hpp"
#include "graph/build.hpp"
#include "graph/sources.hpp"
#include "workloads/hash.hpp"

namespace atl::kernels {
namespace {

constexpr int kWeightBits = 24;

double seconds_of(FunctionRef<void()> work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// The first rule that a vertex breaks, of whoever comes last: pieces go on to their end.
class Broken {
 public:
  void add(int rule, Vertex v) {
    // Relaxed: read after the loop, which orders it.
    found_.store(static_cast<std::uint64_t>(rule) << 32 | v, std::memory_order_relaxed);
  }
  [[nodiscard]] bool any() const { return found_.load(std::memory_order_relaxed) != 0; }
  void check() const {
    constexpr const char* kWhy[] = {
        "",
        " does not lead to the root by its parents",
        " has another distance than the tree gives it",
        " has an edge that is shorter than levels or distances differ",
        " is not in the tree, and a neighbour is",
        " has a parent that is no neighbour",
    };
    const std::uint64_t found = found_.load(std::memory_order_relaxed);
    if (found == 0) return;
    throw WrongAnswer("graph500: rule " + std::to_string(found >> 32) + ": vertex " +
                      std::to_string(static_cast<Vertex>(found)) + kWhy[found >> 32]);
  }

 private:
  std::atomic<std::uint64_t> found_{0};
};

class Validation {
 public:
  Validation(Team& team, const EdgeList& list, Vertex source, std::span<const Vertex> parents,
             const Distances* distances)
      : team_(team),
        list_(list),
        source_(source),
        parents_(parents),
        distances_(distances),
        levels_(parents.size(), kNone),
        joined_(parents.size(), kNothing) {}

  std::uint64_t run() {
    find_levels();
    const std::uint64_t edges = check_edges();
    Broken broken;
    team_.loop(parents_.size(), 0, [&](std::size_t first, std::size_t last) {
      for (auto v = static_cast<Vertex>(first); v < last; ++v) {
        if (const int rule = rule_broken_at(v); rule != 0) broken.add(rule, v);
      }
    });
    broken.check();
    return edges;
  }

 private:
  enum Joined : std::uint8_t { kNothing, kByAnEdge, kAsLong };

  // Rules 2 and 5, after check_edges; else 0.
  [[nodiscard]] int rule_broken_at(Vertex v) const {
    if (v != source_ && parents_[v] != kNone) {
      return joined_[v] == kAsLong ? 0 : joined_[v] == kNothing ? 5 : 2;
    }
    if (distances_ == nullptr) return 0;
    const std::uint64_t right = v == source_ ? 0 : kFar<std::uint64_t>;
    return distance_of(*distances_, v) == right ? 0 : 2;
  }

  Vertex level(Vertex v) { return std::atomic_ref(levels_[v]).load(std::memory_order_relaxed); }

  // Rule 1. Each vertex goes up to one whose level is known, then again to give out the levels.
  // Several may do so at once: all find the same. A vertex without a way up takes V steps, so the
  // first one is the last.
  void find_levels() {
    Broken broken;
    const auto vertices = static_cast<Vertex>(parents_.size());
    if (parents_[source_] != source_) broken.add(1, source_);
    broken.check();
    levels_[source_] = 0;
    team_.loop(vertices, 0, [&](std::size_t first, std::size_t last) {
      for (auto v = static_cast<Vertex>(first); v < last; ++v) {
        if (parents_[v] == kNone || broken.any()) continue;
        Vertex steps = 0;
        Vertex up = v;
        while (up < vertices && level(up) == kNone && steps < vertices) {
          up = parents_[up];
          ++steps;
        }
        if (up >= vertices || level(up) == kNone) {
          broken.add(1, v);
          continue;
        }
        Vertex deep = level(up) + steps;
        for (Vertex at = v; at != up; at = parents_[at]) {
          std::atomic_ref(levels_[at]).store(deep--, std::memory_order_relaxed);
        }
      }
    });
    broken.check();
  }

  // Rules 3 and 4, and which vertices are joined to their parents.
  std::uint64_t check_edges() {
    Broken broken;
    std::atomic<std::uint64_t> inside{0};
    team_.loop(list_.edges.size(), 0, [&](std::size_t first, std::size_t last) {
      std::uint64_t edges = 0;
      for (std::size_t at = first; at < last; ++at) {
        const auto [a, b] = list_.edges[at];
        const bool has_a = levels_[a] != kNone;
        const bool has_b = levels_[b] != kNone;
        if (!has_a || !has_b) {
          if (has_a != has_b) broken.add(4, has_a ? b : a);
          continue;
        }
        ++edges;
        if (a == b) continue;
        const std::uint64_t apart = distances_ == nullptr ? difference(levels_[a], levels_[b])
                                                          : difference(distance_of(*distances_, a),
                                                                       distance_of(*distances_, b));
        const std::uint64_t length =
            distances_ == nullptr ? 1 : static_cast<std::uint64_t>((*list_.weights)[at]);
        if (apart > length) broken.add(3, a);
        join(a, b, apart == length);
        join(b, a, apart == length);
      }
      inside.fetch_add(edges, std::memory_order_relaxed);
    });
    broken.check();
    return inside.load(std::memory_order_relaxed);
  }

  static std::uint64_t difference(std::uint64_t a, std::uint64_t b) {
    return a < b ? b - a : a - b;
  }

  // Duplicates of an edge may be met at once: the one that is as long has the last word.
  void join(Vertex parent, Vertex child, bool as_long) {
    if (parents_[child] != parent) return;
    const std::atomic_ref<std::uint8_t> word(joined_[child]);
    const bool behind =
        distances_ == nullptr || distance_of(*distances_, parent) < distance_of(*distances_, child);
    if (as_long && behind) {
      word.store(kAsLong, std::memory_order_relaxed);
      return;
    }
    std::uint8_t nothing = kNothing;
    word.compare_exchange_strong(nothing, kByAnEdge, std::memory_order_relaxed);
  }

  Team& team_;
  const EdgeList& list_;
  const Vertex source_;
  const std::span<const Vertex> parents_;
  const Distances* const distances_;  // null: of a breadth-first search
  std::vector<Vertex> levels_;
  std::vector<std::uint8_t> joined_;
};

}  // namespace

EdgeList graph500_edges(Team& team, const Memory& memory, int scale, std::uint64_t degree,
                        std::uint64_t seed) {
  EdgeList list = kronecker_edges(team, memory, scale, degree, seed);
  list.weights.emplace(make_array<Weight>(memory, list.edges.size()));
  const std::uint64_t base = workloads::mixed(seed + 3);
  team.loop(list.edges.size(), 0, [&](std::size_t first, std::size_t last) {
    for (std::size_t at = first; at < last; ++at) {
      const std::uint64_t random = workloads::mixed(base + at * workloads::kGolden);
      (*list.weights)[at] = static_cast<Weight>(1 + (random >> (64 - kWeightBits)));
    }
  });
  return list;
}

void shortest_path_tree(Team& team, const Graph& graph, Vertex source, const Distances& distances,
                        std::span<Vertex> parents) {
  std::visit(
      [&](const auto& distance) {
        using Distance = std::remove_cvref_t<decltype(distance[0])>;
        team.loop(graph.vertices, 0, [&](std::size_t first, std::size_t last) {
          for (auto v = static_cast<Vertex>(first); v < last; ++v) {
            parents[v] = v == source ? v : kNone;
            if (v == source || distance[v] == kFar<Distance>) continue;
            const auto from = graph.out.of(v);
            const auto weight = graph.out.weights_of(v);
            std::size_t at = 0;
            while (at < from.size() &&
                   distance[v] - distance[from[at]] != static_cast<Distance>(weight[at])) {
              ++at;
            }
            if (at < from.size()) parents[v] = from[at];
          }
        });
      },
      distances);
}

std::uint64_t validate_tree(Team& team, const EdgeList& list, Vertex source,
                            std::span<const Vertex> parents, const Distances* distances) {
  return Validation(team, list, source, parents, distances).run();
}

namespace {

std::vector<Vertex> search_keys(const Graph& graph, std::uint64_t seed, std::size_t wanted) {
  std::vector<Vertex> keys;
  for (int draw = 0; keys.size() < wanted && draw < 100'000; ++draw) {
    const Vertex key = pick_source(graph, seed, draw);
    if (std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(key);
  }
  return keys;
}

Result run_graph500(Team& team, const Settings& settings, Conditions& conditions) {
  const Memory& memory = conditions.memory;
  std::optional<EdgeList> list;
  std::optional<Graph> graph;
  const double generated = seconds_of([&] {
    list = graph500_edges(team, memory, static_cast<int>(settings.number("scale")),
                          settings.number("degree"), conditions.seed);
  });
  const double built =
      seconds_of([&] { graph = build_graph(team, memory, *list, {.weights = true}); });
  conditions.make_s = generated + built;
  const std::uint64_t delta = default_delta(*graph);
  const std::vector<Vertex> keys =
      search_keys(*graph, conditions.seed, static_cast<std::size_t>(conditions.runs));
  Array<Vertex> array = make_array<Vertex>(memory, graph->vertices);
  const std::span<Vertex> parents(array.data(), array.size());
  const auto key_of = [&](int run) { return keys[static_cast<std::size_t>(run) % keys.size()]; };
  double edges = 0;
  double bfs_s_of_edge = 0;  // summed, for harmonic means of edges a second
  double sssp_s_of_edge = 0;
  time_runs(
      conditions, [](int) {}, [&](int run) { bfs(team, memory, *graph, key_of(run), parents); },
      [&](int run) {
        const Vertex key = key_of(run);
        const auto all = static_cast<double>(validate_tree(team, *list, key, parents));
        edges += all;
        bfs_s_of_edge += conditions.seconds.back() / std::max(all, 1.0);
        std::optional<Distances> distances;
        const double passed = seconds_of([&] {
          distances = sssp(team, memory, *graph, key, delta);
          shortest_path_tree(team, *graph, key, *distances, parents);
        });
        validate_tree(team, *list, key, parents, &*distances);
        sssp_s_of_edge += passed / std::max(all, 1.0);
      });
  const double runs = conditions.runs;
  return {.work = edges / runs,
          .figures = {{"vertices", static_cast<double>(graph->vertices)},
                      {"input_edges", static_cast<double>(list->edges.size())},
                      {"construction_s", built},
                      {"bfs_teps", runs / bfs_s_of_edge},
                      {"sssp_teps", runs / sssp_s_of_edge}}};
}

}  // namespace

const Workload& graph500_workload() {
  static const Workload workload = {
      "graph500",
      "Graph500's three kernels, validated; a run is a breadth-first search",
      "edges",
      {{"scale", "20", "the graph has 2^scale vertices", 1, 31},
       {"degree", "16", "and this many edges for each", 1, 1 << 16}},
      [](const Settings& settings, int) {
        // The list; its building and rows, of both directions of the edges; the searches.
        const std::uint64_t vertices = std::uint64_t{1} << settings.number("scale");
        const std::uint64_t edges = settings.number("degree") * vertices;
        return edges * (sizeof(Edge) + sizeof(Weight)) +
               building_bytes(vertices, 2 * edges, kWeightBits + 1) +
               2 * edges * (sizeof(Vertex) + sizeof(Weight)) + vertices * 64;
      },
      run_graph500,
  };
  return workload;
}

}  // namespace atl::kernels
