// The generators, against theory and a plain generator.
#include "graph/edges.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <random>
#include <span>
#include <vector>

#include "graph/kronecker.hpp"
#include "kernels/graphs.hpp"

namespace atl::kernels {
namespace {

constexpr double kQuadrants[] = {0.57, 0.19, 0.19, 0.05};

bool same(std::span<const Edge> left, std::span<const Edge> right) {
  return std::equal(left.begin(), left.end(), right.begin(), right.end(),
                    [](Edge a, Edge b) { return a.from == b.from && a.to == b.to; });
}

std::vector<Edge> edges_of(const EdgeList& list) { return {list.edges.begin(), list.edges.end()}; }

TEST(Kronecker, IsTheSameWithoutVectors) {
  with_team("os", 2, [](Team&, const Memory& memory) {
    for (const int scale : {1, 2, 7, 20, 24, 25, 31}) {
      const Kronecker kronecker(scale, 3);
      for (const std::uint64_t first : {0u, 1u, 64u, 4096u, 1u << 31}) {
        for (const std::size_t count : {0, 1, 63, 64, 1000, 10'000}) {
          Array<Edge> fast = make_array<Edge>(memory, count);
          std::vector<Edge> plain(count);
          kronecker.fill(first, {fast.data(), count});
          kronecker.fill_plain(first, plain);
          EXPECT_TRUE(same({fast.data(), count}, plain)) << scale << " " << first << " " << count;
        }
      }
    }
  });
}

TEST(Kronecker, GivesEachVertexItsName) {
  for (const int scale : {1, 2, 3, 10, 17}) {
    const Kronecker kronecker(scale, 1);
    std::vector<bool> taken(std::size_t{1} << scale);
    for (std::uint32_t v = 0; v < taken.size(); ++v) {
      const Vertex name = kronecker.name_of(v << (32 - scale));
      ASSERT_LT(name, taken.size());
      EXPECT_FALSE(taken[name]);
      taken[name] = true;
    }
  }
}

// The levels of 2^22 edges, under the vertices' old names: in each set of three levels the 64
// blocks come as often as the product of quadrants says, so levels are independent of each other.
TEST(Kronecker, ChoosesQuadrantsAsOftenAsItShould) {
  constexpr int kScale = 17;  // level 0 of all eight draws, then level 1, then level 2 of the first
  const Kronecker kronecker(kScale, 5);
  std::vector<std::uint32_t> old(std::size_t{1} << kScale);
  for (std::uint32_t v = 0; v < old.size(); ++v) old[kronecker.name_of(v << (32 - kScale))] = v;
  std::vector<Edge> edges(std::size_t{1} << 22);
  kronecker.fill(0, edges);
  for (const std::array<int, 3> levels :
       {std::array{0, 8, 16}, {0, 1, 2}, {5, 6, 7}, {7, 8, 16}, {3, 11, 16}, {15, 14, 13}}) {
    std::array<double, 64> counts{};
    for (const Edge edge : edges) {
      std::size_t block = 0;
      for (const int level : levels) {
        const int shift = kScale - 1 - level;
        block = block * 4 + (old[edge.from] >> shift & 1) * 2 + (old[edge.to] >> shift & 1);
      }
      ++counts[block];
    }
    double chi_square = 0;
    for (std::size_t block = 0; block < counts.size(); ++block) {
      const double expected = static_cast<double>(edges.size()) * kQuadrants[block / 16] *
                              kQuadrants[block / 4 % 4] * kQuadrants[block % 4];
      chi_square += (counts[block] - expected) * (counts[block] - expected) / expected;
    }
    EXPECT_LT(chi_square, 63 + 5 * std::sqrt(2 * 63.0)) << levels[0] << levels[1] << levels[2];
  }
}

struct Moments {
  double self_loops = 0;
  double out_squares = 0;  // the sum of out-degrees squared
  double in_out = 0;       // the sum of in-degree times out-degree
  double alone = 0;        // vertices without edges
};

Moments moments(Vertex vertices, std::span<const Edge> edges) {
  std::vector<double> out(vertices);
  std::vector<double> in(vertices);
  Moments found;
  for (const Edge edge : edges) {
    ++out[edge.from];
    ++in[edge.to];
    found.self_loops += edge.from == edge.to ? 1 : 0;
  }
  for (Vertex v = 0; v < vertices; ++v) {
    found.out_squares += out[v] * out[v];
    found.in_out += out[v] * in[v];
    found.alone += out[v] + in[v] == 0 ? 1 : 0;
  }
  return found;
}

// As Graph500 describes it: one edge after the other, level by level, then a random order.
std::vector<Edge> plain_kronecker(int scale, std::size_t count) {
  std::mt19937_64 random(11);
  std::vector<Vertex> names(std::size_t{1} << scale);
  std::iota(names.begin(), names.end(), 0u);
  std::shuffle(names.begin(), names.end(), random);
  std::discrete_distribution<unsigned> quadrant(std::begin(kQuadrants), std::end(kQuadrants));
  std::vector<Edge> edges(count);
  for (Edge& edge : edges) {
    for (int level = 0; level < scale; ++level) {
      const unsigned chosen = quadrant(random);
      edge = {edge.from << 1 | chosen >> 1, edge.to << 1 | (chosen & 1)};
    }
    edge = {names[edge.from], names[edge.to]};
  }
  return edges;
}

TEST(Kronecker, HasTheMomentsOfAPlainGenerator) {
  with_team("os", 2, [](Team& team, const Memory& memory) {
    constexpr int kScale = 14;
    const EdgeList list = kronecker_edges(team, memory, kScale, 16, 2);
    const std::vector<Edge> edges = edges_of(list);
    const Moments ours = moments(list.vertices, edges);
    const Moments plain = moments(list.vertices, plain_kronecker(kScale, edges.size()));
    EXPECT_NEAR(ours.self_loops, plain.self_loops, 6 * std::sqrt(plain.self_loops));
    EXPECT_NEAR(ours.out_squares / plain.out_squares, 1, 0.03);
    EXPECT_NEAR(ours.in_out / plain.in_out, 1, 0.03);
    EXPECT_NEAR(ours.alone, plain.alone, 6 * std::sqrt(plain.alone));
    const auto pairs = static_cast<double>(edges.size()) * static_cast<double>(edges.size());
    EXPECT_NEAR(ours.out_squares / (pairs * std::pow(0.76 * 0.76 + 0.24 * 0.24, kScale)), 1, 0.03);
  });
}

TEST(Uniform, HasTheMomentsOfPoisson) {
  with_team("os", 2, [](Team& team, const Memory& memory) {
    const EdgeList list = uniform_edges(team, memory, 16, 16, 2);
    const std::vector<Edge> edges = edges_of(list);
    const Moments found = moments(list.vertices, edges);
    const double vertices = list.vertices;
    EXPECT_NEAR(found.self_loops, 16, 6 * 4);
    EXPECT_NEAR(found.out_squares / vertices, 16 * 16 + 16, 1);
    EXPECT_NEAR(found.in_out / vertices, 16 * 16, 1);
  });
}

TEST(Generators, GiveTheSameForAnyTeam) {
  std::vector<Edge> kronecker;
  std::vector<Edge> uniform;
  for (const auto& [scheduler, workers] : teams()) {
    with_team(scheduler, workers, [&](Team& team, const Memory& memory) {
      const std::vector<Edge> first = edges_of(kronecker_edges(team, memory, 11, 7, 9));
      const std::vector<Edge> second = edges_of(uniform_edges(team, memory, 11, 7, 9));
      if (kronecker.empty()) kronecker = first;
      if (uniform.empty()) uniform = second;
      EXPECT_TRUE(same(first, kronecker)) << scheduler << " with " << workers;
      EXPECT_TRUE(same(second, uniform)) << scheduler << " with " << workers;
    });
  }
}

TEST(Generators, GiveOtherEdgesForOtherSeeds) {
  with_team("os", 1, [](Team& team, const Memory& memory) {
    EXPECT_FALSE(same(edges_of(kronecker_edges(team, memory, 10, 4, 1)),
                      edges_of(kronecker_edges(team, memory, 10, 4, 2))));
    EXPECT_FALSE(same(edges_of(uniform_edges(team, memory, 10, 4, 1)),
                      edges_of(uniform_edges(team, memory, 10, 4, 2))));
  });
}

}  // namespace
}  // namespace atl::kernels
