#include "graph/edges_workload.hpp"

#include <bit>
#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

#include "graph/edges.hpp"

namespace atl::kernels {
namespace {

// Writes the memory past the caches, and nothing else. Not with zeroes, which some processors write
// faster than others.
void plain_fill(Team& team, Array<Edge>& edges) {
  team.loop(edges.size(), 0, [&](std::size_t first, std::size_t last) {
#if defined(__x86_64__)
    constexpr std::size_t kPair = sizeof(__m128i) / sizeof(Edge);
    for (; first < last && first % kPair != 0; ++first) edges[first] = {1, 2};
    const __m128i pair = _mm_set_epi32(2, 1, 2, 1);
    for (; last - first >= kPair; first += kPair) {
      _mm_stream_si128(reinterpret_cast<__m128i*>(&edges[first]), pair);
    }
    _mm_sfence();
#endif
    for (; first < last; ++first) edges[first] = {1, 2};
  });
}

std::uint64_t size_of(const Settings& settings) {
  return settings.number("degree") << settings.number("scale");
}

Result run_edges(Team& team, const Settings& settings, Conditions& conditions) {
  const int scale = static_cast<int>(settings.number("scale"));
  const std::uint64_t size = size_of(settings);
  const Generator generator =
      settings.text("graph") == "uniform" ? Generator::kUniform : Generator::kKronecker;
  Array<Edge> edges = make_array<Edge>(conditions.memory, size);
  Array<Edge> again = make_array<Edge>(conditions.memory, size);
  fill_edges(team, generator, scale, conditions.seed, again, Instructions::kPlain);
  plain_fill(team, edges);  // now there are pages
  std::vector<double> fills;
  time_runs(
      conditions,
      [&](int) {
        const auto begin = std::chrono::steady_clock::now();
        plain_fill(team, edges);
        const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
        fills.push_back(passed.count());
      },
      [&](int) { fill_edges(team, generator, scale, conditions.seed, edges); },
      [&](int) {
        team.loop(size, 0, [&](std::size_t first, std::size_t last) {
          for (std::size_t at = first; at < last; ++at) {
            if (std::bit_cast<std::uint64_t>(edges[at]) ==
                std::bit_cast<std::uint64_t>(again[at])) {
              continue;
            }
            throw WrongAnswer("edges: edge " + std::to_string(at) +
                              " is another one than the "
                              "plain generator's");
          }
        });
      });
  const auto bytes = static_cast<double>(size * sizeof(Edge));
  const double fill = median(fills);
  return {.work = static_cast<double>(size),
          .traffic_bytes = bytes,
          .figures = {{"fill_gbs", bytes / fill / 1e9},
                      {"of_fill", fill / median(conditions.seconds)}}};
}

}  // namespace

const Workload& edges_workload() {
  static const Workload workload = {
      "edges",
      "the making of a graph's edges in memory that is there, beside a plain fill of it",
      "edges",
      {{"graph", "kronecker", "the generator", 0, 0, {"kronecker", "uniform"}},
       {"scale", "20", "2^scale vertices", 1, 31},
       {"degree", "16", "edges for each vertex", 1, 1 << 16}},
      [](const Settings& settings, int) { return 2 * size_of(settings) * sizeof(Edge); },
      run_edges,
  };
  return workload;
}

}  // namespace atl::kernels
