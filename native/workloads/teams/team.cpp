#include "team.hpp"

#include <algorithm>
#include <thread>

#include "teams/teams.hpp"
#include "workload.hpp"

namespace atl::kernels {
namespace {

struct Named {
  const char* name;
  std::unique_ptr<Team> (*make)(const TeamOptions& options);
};

constexpr Named kTeams[] = {
    {"atoll", atoll_team},   {"arcas-printed", printed_team},
    {"os", os_team},         {"async", async_team},
#ifdef ATOLL_WITH_OPENMP
    {"openmp", openmp_team},
#endif
#ifdef ATOLL_WITH_TBB
    {"tbb", tbb_team},
#endif
};

// Of this machine: once, as it takes tens of milliseconds.
const Places& places() {
  static const Places here = places_here();
  return here;
}

// For each rank one of `parts`, evenly.
std::vector<int> spread_over(int workers, int parts) {
  std::vector<int> of_rank;
  for (int rank = 0; rank < workers; ++rank) of_rank.push_back(rank * parts / workers);
  return of_rank;
}

}  // namespace

NodeMap spread_over_nodes(int workers, const std::vector<int>& nodes) {
  NodeMap map;
  map.nodes = nodes;
  map.node_of_rank = spread_over(workers, static_cast<int>(nodes.size()));
  for (int& node : map.node_of_rank) node = nodes[static_cast<std::size_t>(node)];
  return map;
}

UnplacedTeam::UnplacedTeam(int workers)
    : workers_(workers),
      nodes_(spread_over_nodes(workers, places().nodes())),
      chiplets_(spread_over(workers, places().chiplets())) {}

std::size_t default_grain(std::size_t items, std::size_t grain, int workers) {
  constexpr std::size_t kPiecesOfWorker = 32;  // as atl::parallel_for
  if (grain != 0) return grain;
  return std::max<std::size_t>(items / (kPiecesOfWorker * static_cast<std::size_t>(workers)), 1);
}

std::string team_names() {
  std::string names;
  for (const Named& team : kTeams) names += (names.empty() ? "" : ", ") + std::string(team.name);
  return names;
}

std::unique_ptr<Team> make_team(const TeamOptions& options) {
  for (const Named& team : kTeams) {
    if (options.scheduler != team.name) continue;
    if (!options.approach.empty() && options.scheduler != "atoll") {
      throw UsageFault("--approach, --spread: only --scheduler atoll moves its workers");
    }
    return team.make(options);
  }
  const bool left_out = options.scheduler == "openmp" || options.scheduler == "tbb";
  throw UsageFault("--scheduler " + options.scheduler + ": " +
                   (left_out ? "this build has none; build Atoll from source where its headers are "
                               "installed (libtbb-dev, libgomp)"
                             : "unknown") +
                   "; there are " + team_names());
}

}  // namespace atl::kernels
