// The schedulers behind team.hpp, and what they have in common.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "atoll/runtime/places.hpp"
#include "team.hpp"

namespace atl::kernels {

std::unique_ptr<Team> atoll_team(const TeamOptions& options);
std::unique_ptr<Team> printed_team(const TeamOptions& options);
std::unique_ptr<Team> os_team(const TeamOptions& options);
std::unique_ptr<Team> async_team(const TeamOptions& options);
std::unique_ptr<Team> openmp_team(const TeamOptions& options);
std::unique_ptr<Team> tbb_team(const TeamOptions& options);

// An even share of the ranks for each node, neighbours together, as nobody knows where the system
// puts them.
[[nodiscard]] NodeMap spread_over_nodes(int workers,
                                        const std::vector<int>& nodes = places_here().nodes());

// `grain`, or for 0 what makes 32 pieces for each worker.
[[nodiscard]] std::size_t default_grain(std::size_t items, std::size_t grain, int workers);

}  // namespace atl::kernels
