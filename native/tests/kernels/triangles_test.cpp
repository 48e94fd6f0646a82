// Triangle counts against sets of neighbours, by both ways.
#include "graph/triangles.hpp"

#include <gtest/gtest.h>

#include <set>

#include "kernels/known_graphs.hpp"
#include "kernels/running.hpp"

namespace atl::kernels {
namespace {

std::uint64_t counted_by_sets(const KnownGraph& known) {
  std::vector<std::set<Vertex>> above(known.vertices);
  for (const auto [from, to] : known.edges) {
    if (from != to) above[std::min(from, to)].insert(std::max(from, to));
  }
  std::uint64_t found = 0;
  for (Vertex u = 0; u < known.vertices; ++u) {
    for (const Vertex v : above[u]) {
      for (const Vertex w : above[v]) found += above[u].count(w);
    }
  }
  return found;
}

TEST(Triangles, CountsThem) {
  std::vector<KnownGraph> all = known_graphs();
  all.push_back({"none", 0, {}});
  // Hubs whose bitmaps have several steps of words, beside others without.
  KnownGraph hubs{"hubs", 1500, {}};
  std::mt19937 random(5);
  for (Vertex v = 0; v < 1500; ++v) {
    for (int edge = 0; edge < 20; ++edge) {
      hubs.edges.push_back({v, static_cast<Vertex>(random() % (edge < 10 ? 700 : 1500))});
    }
  }
  all.push_back(std::move(hubs));
  std::vector<std::uint64_t> right;
  std::vector<Graph> graphs;
  for (const KnownGraph& known : all) {
    right.push_back(counted_by_sets(known));
    graphs.push_back(build(known, false));
  }
  EXPECT_EQ(right[4], 2U);                 // two triangles
  EXPECT_EQ(right[9], 70U * 69 * 68 / 6);  // complete
  for (const auto& [scheduler, workers] : teams()) {
    with_team(scheduler, workers, [&](Team& team, const Memory& memory) {
      for (std::size_t at = 0; at < all.size(); ++at) {
        const std::string where =
            scheduler + ", " + std::to_string(workers) + " workers, " + all[at].name;
        EXPECT_EQ(count_triangles(team, memory, graphs[at]), right[at]) << where;
        EXPECT_EQ(count_triangles_again(team, graphs[at]), right[at]) << where;
      }
    });
  }
}

TEST(Triangles, RunAsAWorkload) {
  const Result result = run_workload(triangles_workload(), "atoll", 2, {{"scale", "12"}}, 2);
  EXPECT_GT(result.figures.back().second, 0);
}

}  // namespace
}  // namespace atl::kernels
