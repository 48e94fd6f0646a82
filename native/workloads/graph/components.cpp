#include "graph/components.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "graph/answer.hpp"
#include "graph/compressed_rows.hpp"
#include "graph/make.hpp"
#include "graph/messages.hpp"

namespace atl::kernels {
namespace {

// A forest: each vertex names one of its tree whose number is at most its own; roots name
// themselves. Relaxed everywhere: a name that is read late is a vertex of the same tree, and a root
// gets another name by compare-and-swap, so it is hung below one other tree only.
class Forest {
 public:
  explicit Forest(std::span<Vertex> names) : names_(names) {}

  void set(Vertex v, Vertex name) const { at(v).store(name, std::memory_order_relaxed); }
  void fetch(Vertex v) const { __builtin_prefetch(&names_[v]); }

  // Two steps always: most vertices are one step from their root, roots none, and a branch between
  // these would be hard to predict.
  [[nodiscard]] Vertex root(Vertex v) const { return root_above(name(v)); }

  // Makes `v` name its root, which it returns.
  Vertex flatten(Vertex v) const {
    const Vertex named = name(v);
    const Vertex top = root_above(named);
    // Its name is read once. Were it read again here, a root that another worker has hung below
    // another tree since would get its own name back, and the two trees were apart again.
    if (top != named) set(v, top);
    return top;
  }

  // Makes one tree of two, given their roots or what was that until now.
  void link(Vertex one, Vertex two) const {
    while (one != two) {
      if (one < two) std::swap(one, two);
      Vertex expected = one;
      if (at(one).compare_exchange_strong(expected, two, std::memory_order_relaxed)) return;
      one = root(expected);
      two = root(two);
    }
  }

 private:
  [[nodiscard]] std::atomic_ref<Vertex> at(Vertex v) const {
    return std::atomic_ref<Vertex>(names_[v]);
  }
  [[nodiscard]] Vertex name(Vertex v) const { return at(v).load(std::memory_order_relaxed); }
  [[nodiscard]] Vertex root_above(Vertex top) const {
    for (Vertex above = name(top); above != top; above = name(top)) top = above;
    return top;
  }
  std::span<Vertex> names_;
};

// The root of the largest tree, most likely.
Vertex giant_of(const Forest& forest, Vertex vertices) {
  constexpr int kSample = 1024;
  std::mt19937 random;
  std::unordered_map<Vertex, int> times;
  for (int at = 0; at < kSample; ++at)
    ++times[forest.root(static_cast<Vertex>(random() % vertices))];
  return std::max_element(
             times.begin(), times.end(),
             [](const auto& left, const auto& right) { return left.second < right.second; })
      ->first;
}

template <class AnyRows>
void afforest(Team& team, const Memory& memory, const GraphOf<AnyRows>& graph,
              std::span<Vertex> labels) {
  constexpr std::size_t kGrain = 4096;
  constexpr std::size_t kAhead = 16;
  const Forest forest(labels);
  const std::size_t vertices = labels.size();
  const auto each = [&](auto&& use) {
    team.loop(vertices, kGrain, [&](std::size_t from, std::size_t last) {
      for (std::size_t v = from; v < last; ++v) use(static_cast<Vertex>(v));
    });
  };
  if (graph.out.entries() == 0) return each([&](Vertex v) { forest.set(v, v); });

  Array<Vertex> second = make_array<Vertex>(memory, vertices);
  each([&](Vertex v) {
    graph.out.fetch(static_cast<Vertex>(std::min(v + kAhead, vertices)));
    const auto [one, two] = graph.out.front(v);
    forest.set(v, std::min(v, one));
    second[v] = two;
  });
  each([&](Vertex v) {
    forest.fetch(second[std::min(v + kAhead, vertices - 1)]);
    forest.link(forest.flatten(v), forest.root(second[v]));
  });
  const Vertex giant = giant_of(forest, graph.vertices);
  each([&](Vertex v) {
    const bool outside = forest.flatten(v) != giant;
    const auto link = [&](Vertex other) { forest.link(forest.root(v), forest.root(other)); };
    if (outside & (graph.out.degree(v) != 0)) each_of(graph.out, v, link);
    if (graph.in && outside) each_of(*graph.in, v, link);
  });
  each([&](Vertex v) { forest.flatten(v); });
}

}  // namespace

template <class AnyRows>
void components(Team& team, const Memory& memory, const GraphOf<AnyRows>& graph,
                std::span<Vertex> labels) {
  afforest(team, memory, graph, labels);
}

template <class AnyRows>
void components_by_messages(Team& team, const GraphOf<AnyRows>& graph, std::span<Vertex> labels) {
  std::iota(labels.begin(), labels.end(), Vertex{0});
  const std::vector<Vertex> all(labels.begin(), labels.end());
  propagate<Vertex>(
      team, graph.vertices, all,
      [&](Vertex v, auto&& send) {
        const auto spread = [&](Vertex other) { send(other, labels[v]); };
        each_of(graph.out, v, spread);
        if (graph.in) each_of(*graph.in, v, spread);
      },
      [&](Vertex v, Vertex label) {
        if (label >= labels[v]) return false;
        labels[v] = label;
        return true;
      });
}

template <class AnyRows>
std::uint64_t verify_components(const GraphOf<AnyRows>& graph, std::span<const Vertex> labels) {
  std::uint64_t count = 0;
  std::vector<Vertex> right(graph.vertices, kNone);
  std::vector<Vertex> stack;
  for (Vertex first = 0; first < graph.vertices; ++first) {
    if (right[first] != kNone) continue;
    ++count;
    const auto reach = [&](Vertex v) {
      if (right[v] != kNone) return;
      right[v] = first;  // the smallest: those before it have been reached
      stack.push_back(v);
    };
    reach(first);
    while (!stack.empty()) {
      const Vertex v = stack.back();
      stack.pop_back();
      each_of(graph.out, v, reach);
      if (graph.in) each_of(*graph.in, v, reach);
    }
  }
  for (Vertex v = 0; v < graph.vertices; ++v) {
    if (labels[v] == right[v]) continue;
    throw WrongAnswer("cc: vertex " + std::to_string(v) + " has label " +
                      std::to_string(labels[v]) + ", not " + std::to_string(right[v]));
  }
  return count;
}

#define INSTANTIATE(AnyRows)                                                                  \
  template void components(Team&, const Memory&, const GraphOf<AnyRows>&, std::span<Vertex>); \
  template void components_by_messages(Team&, const GraphOf<AnyRows>&, std::span<Vertex>);    \
  template std::uint64_t verify_components(const GraphOf<AnyRows>&, std::span<const Vertex>);
INSTANTIATE(Rows)
INSTANTIATE(CompressedRows)
#undef INSTANTIATE

namespace {

constexpr GraphNeeds kComponentsNeeds = {
    .incoming = true, .compressible = true, .of_vertex = 32, .of_message = 16};

template <class AnyRows>
Result run_components(Team& team, const Settings& settings, Conditions& conditions,
                      const GraphOf<AnyRows>& graph) {
  std::optional<Array<Vertex>> labels;
  std::uint64_t count = 0;
  time_runs(
      conditions, [&](int) { labels.reset(); },
      [&](int) {
        labels.emplace(make_array<Vertex>(conditions.memory, graph.vertices));
        const std::span<Vertex> made(labels->data(), labels->size());
        if (settings.text("variant") == "messages") {
          components_by_messages(team, graph, made);
        } else {
          components(team, conditions.memory, graph, made);
        }
      },
      [&](int) { count = verify_components(graph, {labels->data(), labels->size()}); });
  save_answer(settings, graph.vertices,
              [&](Vertex v, std::string& line) { line += std::to_string((*labels)[v]); });
  return {.work = static_cast<double>(graph.edges),
          .figures = {{"vertices", static_cast<double>(graph.vertices)},
                      {"edges", static_cast<double>(graph.edges)},
                      {"bytes_per_entry", bytes_per_entry(graph)},
                      {"components", static_cast<double>(count)}}};
}

}  // namespace

const Workload& components_workload() {
  static const Workload workload = {
      "cc",
      "connected components, by a sample of the edges first (Afforest)",
      "edges",
      with_save(with_variant(graph_parameters(kComponentsNeeds))),
      [](const Settings& settings, int) { return graph_bytes(settings, kComponentsNeeds); },
      [](Team& team, const Settings& settings, Conditions& conditions) {
        return on_rows(team, settings, conditions, kComponentsNeeds, [&](const auto& graph) {
          return run_components(team, settings, conditions, graph);
        });
      },
  };
  return workload;
}

}  // namespace atl::kernels
