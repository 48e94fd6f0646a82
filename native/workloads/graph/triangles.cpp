#include "graph/triangles.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "graph/loops.hpp"
#include "graph/make.hpp"
#include "graph/relabel.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace atl::kernels {
namespace {

using BitWord = std::uint64_t;
constexpr std::uint64_t kWordBits = 64;
constexpr std::uint64_t kStepWords = 8;  // of 512 bits

// Bits that are in both; `words` is a multiple of kStepWords.
inline std::uint64_t common_plain(const BitWord* left, const BitWord* right, std::size_t words) {
  std::uint64_t sum = 0;
  for (std::size_t at = 0; at < words; ++at) {
    sum += static_cast<std::uint64_t>(std::popcount(left[at] & right[at]));
  }
  return sum;
}

#if defined(__x86_64__)
__attribute__((target("popcnt"))) std::uint64_t common_popcnt(const BitWord* left,
                                                              const BitWord* right,
                                                              std::size_t words) {
  std::uint64_t sum = 0;
  for (std::size_t at = 0; at < words; ++at) {
    sum += static_cast<std::uint64_t>(__builtin_popcountll(left[at] & right[at]));
  }
  return sum;
}

__attribute__((target("avx512f,avx512vpopcntdq"))) std::uint64_t common_avx512(const BitWord* left,
                                                                               const BitWord* right,
                                                                               std::size_t words) {
  __m512i sums = _mm512_setzero_si512();
  for (std::size_t at = 0; at < words; at += kStepWords) {
    const __m512i both =
        _mm512_and_si512(_mm512_loadu_si512(left + at), _mm512_loadu_si512(right + at));
    sums = _mm512_add_epi64(sums, _mm512_popcnt_epi64(both));
  }
  std::uint64_t lanes[kStepWords];
  _mm512_storeu_si512(lanes, sums);
  std::uint64_t sum = 0;
  for (const std::uint64_t lane : lanes) sum += lane;
  return sum;
}

const auto common_bits = __builtin_cpu_supports("avx512vpopcntdq") ? common_avx512
                         : __builtin_cpu_supports("popcnt")        ? common_popcnt
                                                                   : common_plain;
#else
constexpr auto common_bits = common_plain;
#endif

inline bool has(const BitWord* bits, Vertex v) {
  return (bits[v / kWordBits] >> (v % kWordBits) & 1) != 0;
}
inline void flip(BitWord* bits, Vertex v) { bits[v / kWordBits] ^= BitWord{1} << (v % kWordBits); }

// Words of the names below v, in whole steps.
inline std::uint64_t words_below(std::uint64_t v) {
  return (v + kWordBits * kStepWords - 1) / (kWordBits * kStepWords) * kStepWords;
}

// Bitmaps of the rows that have many of the vertices that they could have.
class Hubs {
 public:
  Hubs(Team& team, const Memory& memory, const Graph& graph)
      : bits_(make_array<BitWord>(memory, find(graph.out, graph.vertices))) {
    team.loop(begin_.size(), 0, [&](std::size_t first, std::size_t last) {
      for (auto v = static_cast<Vertex>(first); v < last; ++v) {
        if (begin_[v] == kNoBits) continue;
        for (const Vertex w : graph.out.of(v)) flip(bits_.data() + begin_[v], w);
      }
    });
  }

  // nullptr if v is no hub.
  [[nodiscard]] const BitWord* of(Vertex v) const {
    return v < begin_.size() && begin_[v] != kNoBits ? bits_.data() + begin_[v] : nullptr;
  }

 private:
  static constexpr std::uint64_t kNoBits = ~std::uint64_t{0};

  // Gives each hub its place; returns how many words there are.
  std::uint64_t find(const Rows& rows, Vertex vertices) {
    constexpr std::uint64_t kSparse = 256;  // 64 to 512 make no difference at scale 20
    std::uint64_t words = 0;
    for (Vertex v = 0; v < vertices; ++v) {
      if (rows.degree(v) * kSparse < v) continue;
      begin_.resize(std::size_t{v} + 1, kNoBits);
      begin_[v] = words;
      words += words_below(v);
    }
    return words;
  }

  std::vector<std::uint64_t> begin_;  // of each vertex up to the last hub
  Array<BitWord> bits_;
};

class Counter {
 public:
  Counter(Team& team, const Memory& memory, const Graph& lower)
      : team_(team),
        lower_(lower),
        hubs_(team, memory, lower),
        marks_(static_cast<std::size_t>(team.workers())) {}

  std::uint64_t run() {
    loop_by_edges(team_, lower_.out, [&](Vertex first, Vertex last) {
      std::vector<BitWord>& marks = marks_[static_cast<std::size_t>(team_.rank())];
      marks.resize(words_below(lower_.vertices));
      std::uint64_t found = 0;
      for (Vertex u = first; u < last; ++u) found += at(u, marks.data());
      sum_.fetch_add(found, std::memory_order_relaxed);  // read after the loop, which orders it
    });
    return sum_.load(std::memory_order_relaxed);
  }

 private:
  std::uint64_t at(Vertex u, BitWord* marks) const {
    const auto row = lower_.out.of(u);
    if (row.size() < 2) return 0;
    std::uint64_t found = 0;
    for (const Vertex w : row) flip(marks, w);
    for (std::size_t before = 1; before < row.size(); ++before) {
      const Vertex v = row[before];
      if (const BitWord* const bits = hubs_.of(v); bits != nullptr) {
        const std::uint64_t words = words_below(v);
        // A bit of the row costs about as much as a quarter of a step.
        if (before < words * 4 / kStepWords) {
          for (const Vertex w : row.first(before)) found += has(bits, w) ? 1 : 0;
        } else {
          found += common_bits(marks, bits, words);
        }
      } else {
        for (const Vertex w : lower_.out.of(v)) found += has(marks, w) ? 1 : 0;
      }
    }
    for (const Vertex w : row) flip(marks, w);
    return found;
  }

  Team& team_;
  const Graph& lower_;
  const Hubs hubs_;
  std::vector<std::vector<BitWord>> marks_;  // of each worker, all zero between vertices
  std::atomic<std::uint64_t> sum_{0};
};

}  // namespace

std::uint64_t count_triangles(Team& team, const Memory& memory, const Graph& graph) {
  const Graph lower = relabelled(team, memory, graph, Keep::kLower);
  return Counter(team, memory, lower).run();
}

std::uint64_t count_triangles_again(Team& team, const Graph& graph) {
  const auto after = [&](Vertex v, Vertex other) {
    const std::uint64_t mine = graph.out.degree(v);
    const std::uint64_t others = graph.out.degree(other);
    return mine != others ? mine < others : v < other;
  };
  std::vector<std::vector<Vertex>> rows(graph.vertices);
  team.loop(graph.vertices, 0, [&](std::size_t first, std::size_t last) {
    for (auto v = static_cast<Vertex>(first); v < last; ++v) {
      for (const Vertex other : graph.out.of(v)) {
        if (after(v, other)) rows[v].push_back(other);
      }
    }
  });
  std::vector<std::vector<std::uint8_t>> marks(static_cast<std::size_t>(team.workers()));
  std::atomic<std::uint64_t> sum{0};
  loop_by_edges(team, graph.out, [&](Vertex first, Vertex last) {
    std::vector<std::uint8_t>& mine = marks[static_cast<std::size_t>(team.rank())];
    mine.resize(graph.vertices);
    std::uint64_t found = 0;
    for (Vertex u = first; u < last; ++u) {
      for (const Vertex v : rows[u]) mine[v] = 1;
      for (const Vertex v : rows[u]) {
        for (const Vertex w : rows[v]) found += mine[w];
      }
      for (const Vertex v : rows[u]) mine[v] = 0;
    }
    sum.fetch_add(found, std::memory_order_relaxed);
  });
  return sum.load(std::memory_order_relaxed);
}

namespace {

// The bitmaps of hubs take at most 8 times the bytes of the rows that have one direction.
constexpr GraphNeeds kTriangleNeeds = {.undirected = true, .of_vertex = 64, .of_edge = 18};

Result run_triangles(Team& team, const Settings& settings, Conditions& conditions) {
  const Graph graph = make_graph(team, settings, conditions, kTriangleNeeds);
  std::optional<std::uint64_t> right;
  std::uint64_t found = 0;
  time_runs(
      conditions, [](int) {}, [&](int) { found = count_triangles(team, conditions.memory, graph); },
      [&](int) {
        if (!right) right = count_triangles_again(team, graph);
        if (found == *right) return;
        throw WrongAnswer("tc: " + std::to_string(found) + " triangles; another way finds " +
                          std::to_string(*right));
      });
  return {.work = static_cast<double>(graph.edges),
          .figures = {{"vertices", static_cast<double>(graph.vertices)},
                      {"edges", static_cast<double>(graph.edges)},
                      {"triangles", static_cast<double>(found)}}};
}

}  // namespace

const Workload& triangles_workload() {
  static const Workload workload = {
      "tc",
      "triangle count, by bitmaps of the hubs' rows",
      "edges",
      graph_parameters(kTriangleNeeds),
      [](const Settings& settings, int) { return graph_bytes(settings, kTriangleNeeds); },
      run_triangles,
  };
  return workload;
}

}  // namespace atl::kernels
