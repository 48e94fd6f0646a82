// What the tests of graphs share: teams, lists of edges, and rows built the plain way.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "graph/build.hpp"
#include "graph/edges.hpp"
#include "graph/graph.hpp"
#include "team.hpp"

namespace atl::kernels {

// Calls work(team, memory) on a team of that many workers.
inline void with_team(const std::string& scheduler, int workers,
                      const std::function<void(Team&, const Memory&)>& work) {
  const std::unique_ptr<Team> team = make_team({scheduler, workers, ""});
  const Memory memory{.nodes = team->nodes()};
  team->run([&] { work(*team, memory); });
}

// Those of this build. Under ThreadSanitizer without OpenMP and oneTBB: their libraries are not
// built with it, so it does not see how they order their threads, and names races that are none.
inline std::vector<std::string> schedulers() {
  std::vector<std::string> all;
  std::istringstream names(team_names());
  for (std::string name; std::getline(names, name, ',');) {
    all.push_back(name.substr(name.find_first_not_of(' ')));
  }
#ifdef __SANITIZE_THREAD__
  std::erase_if(all, [](const std::string& name) { return name == "openmp" || name == "tbb"; });
#endif
  return all;
}

// Each scheduler with each number of workers; but `async`, which makes a thread of each piece, with
// one, and under a sanitizer, where all takes long, any but Atoll's.
inline std::vector<std::pair<std::string, int>> teams() {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  const auto many = [](const std::string& scheduler) { return scheduler == "atoll"; };
#else
  const auto many = [](const std::string& scheduler) { return scheduler != "async"; };
#endif
  std::vector<std::pair<std::string, int>> all;
  for (const std::string& scheduler : schedulers()) {
    for (const int workers : {1, 2, 5}) {
      if (workers == 2 || many(scheduler)) all.emplace_back(scheduler, workers);
    }
  }
  return all;
}

// The weight of each edge, 0 without weights.
using PlainRows = std::map<std::pair<Vertex, Vertex>, Weight>;

inline PlainRows plain(const Rows& rows, Vertex vertices) {
  PlainRows made;
  for (Vertex v = 0; v < vertices; ++v) {
    const auto row = rows.of(v);
    for (std::size_t at = 0; at < row.size(); ++at) {
      EXPECT_TRUE(at == 0 || row[at - 1] < row[at]) << "row " << v << " is not sorted";
      made.emplace(std::pair(v, row[at]), rows.weight ? rows.weights_of(v)[at] : 0);
    }
  }
  return made;
}

}  // namespace atl::kernels
