#include "graph/pagerank.hpp"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "graph/answer.hpp"
#include "graph/compressed_rows.hpp"
#include "graph/loops.hpp"
#include "graph/make.hpp"
#include "graph/messages.hpp"

namespace atl::kernels {
namespace {

constexpr float kDamping = 0.85F;
// A sweep leaves at most 0.85 of a difference, so 62 suffice but for rounding.
constexpr int kMostSweeps = 100;

float base_of(Vertex vertices) { return (1 - kDamping) / static_cast<float>(vertices); }

template <class AnyRows>
class PageRank {
 public:
  PageRank(Team& team, const Memory& memory, const GraphOf<AnyRows>& graph, std::span<float> scores)
      : team_(team),
        graph_(graph),
        in_(graph.incoming()),
        scores_(scores),
        given_(make_array<float>(memory, graph.vertices)) {}

  Sweeps run() {
    begin();
    Sweeps sweeps;
    do {
      sweeps.change = sweep();
      ++sweeps.count;
    } while (sweeps.change >= kTolerance && sweeps.count < kMostSweeps);
    return sweeps;
  }

 private:
  void begin() {
    std::atomic<std::size_t> joined{0};  // vertices with edges
    if (!graph_.in) {
      team_.loop(scores_.size(), 0, [&](std::size_t v, std::size_t last) {
        std::size_t count = 0;
        for (; v < last; ++v) count += graph_.out.degree(static_cast<Vertex>(v)) != 0 ? 1 : 0;
        joined.fetch_add(count, std::memory_order_relaxed);
      });
    }
    const float even = 1 / static_cast<float>(graph_.vertices);
    const float edge = kDamping * even * static_cast<float>(joined) /
                       static_cast<float>(std::max<std::size_t>(graph_.out.entries(), 1));
    team_.loop(scores_.size(), 0, [&](std::size_t first, std::size_t last) {
      const AnyRows& rows = graph_.out;
      for (auto v = static_cast<Vertex>(first); v < last; ++v) {
        const std::uint64_t degree = rows.degree(v);
        // Of two vertices that have only each other, the scores stay even.
        const bool pair = degree == 1 && rows.degree(rows.front(v).first) == 1;
        scores_[v] =
            graph_.in || pair ? even : base_of(graph_.vertices) + edge * static_cast<float>(degree);
        given_[v] = scores_[v] / static_cast<float>(degree);
      }
    });
  }

  double sweep() {
    std::atomic<double> change{0};
    loop_by_edges(team_, in_.first, [&](Vertex v, Vertex last) {
      const float base = base_of(graph_.vertices);
      double sum = 0;
      for (; v < last; ++v) {
        const float score = base + kDamping * taken(v);
        sum += std::abs(score - std::exchange(scores_[v], score));
        // Relaxed: whether others read it in this sweep or in the next makes no difference to where
        // the scores end. Infinite without an edge, along which it would be read.
        given(v).store(score / static_cast<float>(graph_.out.degree(v)), std::memory_order_relaxed);
      }
      change.fetch_add(sum, std::memory_order_relaxed);
    });
    return change;
  }

  float taken(Vertex v) {
    constexpr std::size_t kBlock = 1024;
    double all = 0;
    in_.until(v, [&](std::span<const Vertex> row) {
      for (; row.size() > kBlock; row = row.subspan(kBlock)) all += taken_from(row.first(kBlock));
      all += taken_from(row);
      return false;
    });
    return static_cast<float>(all);
  }

  // Four sums, as each addition waits for the last.
  float taken_from(std::span<const Vertex> row) {
    const auto value = [&](Vertex v) { return given(v).load(std::memory_order_relaxed); };
    const Vertex* at = row.data();
    const Vertex* const end = at + row.size();
    float sums[4] = {};
    for (; end - at >= 4; at += 4) {
      sums[0] += value(at[0]);
      sums[1] += value(at[1]);
      sums[2] += value(at[2]);
      sums[3] += value(at[3]);
    }
    for (; at != end; ++at) sums[0] += value(*at);
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
  }

  std::atomic_ref<float> given(Vertex v) { return std::atomic_ref<float>(given_[v]); }

  Team& team_;
  const GraphOf<AnyRows>& graph_;
  const AnyRows& in_;
  const std::span<float> scores_;
  Array<float> given_;  // by each vertex along each of its edges
};

}  // namespace

template <class AnyRows>
Sweeps pagerank(Team& team, const Memory& memory, const GraphOf<AnyRows>& graph,
                std::span<float> scores) {
  return scores.empty() ? Sweeps{} : PageRank<AnyRows>(team, memory, graph, scores).run();
}

template <class AnyRows>
Sweeps pagerank_by_messages(Team& team, const GraphOf<AnyRows>& graph, std::span<float> scores) {
  Mailboxes<float> mail(team, graph.vertices);
  std::vector<double> taken(scores.size(), 0);
  std::fill(scores.begin(), scores.end(), 1 / static_cast<float>(graph.vertices));
  Sweeps sweeps;
  do {
    mail.step(
        [&](int rank, auto&& send) {
          const auto [first, last] = mail.part(rank);
          for (Vertex v = first; v < last; ++v) {
            const float given = scores[v] / static_cast<float>(graph.out.degree(v));
            each_of(graph.out, v, [&](Vertex to) { send(to, given); });
          }
        },
        [&](int, Vertex v, float given) { taken[v] += given; });
    std::atomic<double> change{0};
    team.each([&](int rank) {
      const auto [first, last] = mail.part(rank);
      double sum = 0;
      for (Vertex v = first; v < last; ++v) {
        const auto score =
            base_of(graph.vertices) + kDamping * static_cast<float>(std::exchange(taken[v], 0.0));
        sum += std::abs(score - std::exchange(scores[v], score));
      }
      change.fetch_add(sum, std::memory_order_relaxed);
    });
    sweeps.change = change;
    ++sweeps.count;
  } while (sweeps.change >= kTolerance && sweeps.count < kMostSweeps);
  return sweeps;
}

template <class AnyRows>
double verify_pagerank(const GraphOf<AnyRows>& graph, std::span<const float> scores) {
  std::vector<double> taken(scores.size(), 0);
  for (Vertex v = 0; v < graph.vertices; ++v) {
    const double given = scores[v] / static_cast<double>(graph.out.degree(v));
    each_of(graph.out, v, [&](Vertex to) { taken[to] += given; });
  }
  double change = 0;
  for (Vertex v = 0; v < graph.vertices; ++v) {
    change += std::abs(0.15 / graph.vertices + 0.85 * taken[v] - scores[v]);
  }
  if (change < kTolerance) return change;
  throw WrongAnswer("pr: another sweep changes the scores by " + std::to_string(change) +
                    ", not by less than " + std::to_string(kTolerance));
}

#define INSTANTIATE(AnyRows)                                                                 \
  template Sweeps pagerank(Team&, const Memory&, const GraphOf<AnyRows>&, std::span<float>); \
  template Sweeps pagerank_by_messages(Team&, const GraphOf<AnyRows>&, std::span<float>);    \
  template double verify_pagerank(const GraphOf<AnyRows>&, std::span<const float>);
INSTANTIATE(Rows)
INSTANTIATE(CompressedRows)
#undef INSTANTIATE

namespace {

constexpr GraphNeeds kPagerankNeeds = {
    .incoming = true, .compressible = true, .of_vertex = 32, .of_message = 16};

template <class AnyRows>
Result run_pagerank(Team& team, const Settings& settings, Conditions& conditions,
                    const GraphOf<AnyRows>& graph) {
  std::optional<Array<float>> scores;
  Sweeps sweeps;
  double change = 0;
  time_runs(
      conditions, [&](int) { scores.reset(); },
      [&](int) {
        scores.emplace(make_array<float>(conditions.memory, graph.vertices));
        const std::span<float> made(scores->data(), scores->size());
        sweeps = settings.text("variant") == "messages"
                     ? pagerank_by_messages(team, graph, made)
                     : pagerank(team, conditions.memory, graph, made);
      },
      [&](int) { change = verify_pagerank(graph, {scores->data(), scores->size()}); });
  save_answer(settings, graph.vertices, [&](Vertex v, std::string& line) {
    char text[32];
    line.append(text, std::to_chars(text, std::end(text), (*scores)[v]).ptr);
  });
  const double of_sweep = static_cast<double>(graph.incoming().bytes()) + graph.vertices * 12.0;
  return {.work = static_cast<double>(graph.edges) * sweeps.count,
          .traffic_bytes = of_sweep * sweeps.count,
          .figures = {{"vertices", static_cast<double>(graph.vertices)},
                      {"edges", static_cast<double>(graph.edges)},
                      {"bytes_per_entry", bytes_per_entry(graph)},
                      {"sweeps", static_cast<double>(sweeps.count)},
                      {"change", change}}};
}

}  // namespace

const Workload& pagerank_workload() {
  static const Workload workload = {
      "pr",
      "PageRank by pulls, until a sweep changes the scores by less than 0.0001",
      "edges",
      with_save(with_variant(graph_parameters(kPagerankNeeds))),
      [](const Settings& settings, int) { return graph_bytes(settings, kPagerankNeeds); },
      [](Team& team, const Settings& settings, Conditions& conditions) {
        return on_rows(team, settings, conditions, kPagerankNeeds, [&](const auto& graph) {
          return run_pagerank(team, settings, conditions, graph);
        });
      },
  };
  return workload;
}

}  // namespace atl::kernels
