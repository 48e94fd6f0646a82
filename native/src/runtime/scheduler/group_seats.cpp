#include "group_seats.hpp"

namespace atl::runtime {

void GroupSeats::follow(std::size_t placement) {
  if (placement == placement_) return;
  limits_.clear();
  members_.clear();
  core_of_worker_ = seats_.cores();
  placement_ = placement;
}

SpreadBounds GroupSeats::limits(int threads) {
  const auto found = limits_.find(threads);
  if (found != limits_.end()) return found->second;
  const SpreadBounds bounds = member_bounds(seats_.places, core_of_worker_, threads);
  limits_.emplace(threads, bounds);
  return bounds;
}

Ranks GroupSeats::members(int threads, int spread, std::span<const int> now,
                          const Approach& approach) {
  const auto on = [&](std::span<const int> cores) {
    return std::make_shared<const std::vector<int>>(members_on(cores, core_of_worker_));
  };
  if (!now.empty()) {
    std::vector<int> cores;
    for (const int rank : now) cores.push_back(core_of_worker_[static_cast<std::size_t>(rank)]);
    const std::vector<int> own = mapped(seats_.places, core_of_worker_, cores, spread, approach);
    if (!own.empty()) return on(own);
  }
  Ranks& known = members_[{threads, spread}];
  if (known == nullptr) {
    known = on(member_cores(seats_.places, core_of_worker_, threads, spread));
  }
  return known;
}

}  // namespace atl::runtime
