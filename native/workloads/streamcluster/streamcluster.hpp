// StreamCluster: the centers of a stream of points.
#pragma once

#include "streamcluster/local_search.hpp"
#include "workload.hpp"

namespace atl::kernels {

[[nodiscard]] const Workload& streamcluster();

// The sum of weight * distance^2 of each point to its center, in doubles by one loop.
[[nodiscard]] double plain_cost(const Points& points, const Clustering& clustering);

// The sum of the squared distances of all points to the nearest of the rows of `centers`.
[[nodiscard]] double nearest_cost(Team& team, const Points& points,
                                  const std::vector<float>& centers);

// As many rows as are asked for, chosen by k-means++ (Arthur and Vassilvitskii, SODA 2007).
[[nodiscard]] std::vector<float> plus_plus(const Points& points, std::size_t centers,
                                           std::uint64_t seed);

}  // namespace atl::kernels
