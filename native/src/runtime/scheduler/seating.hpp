// Places workers on the usable cores, and the members of a group among the workers, as pure
// functions over mapping.hpp.
#pragma once

#include <span>
#include <vector>

#include "atoll/runtime/controller.hpp"
#include "atoll/runtime/places.hpp"

namespace atl::runtime {

struct SpreadBounds {
  int least = 1;
  int most = 1;
  int clamp(int spread) const { return spread < least ? least : spread > most ? most : spread; }
};

// Indices of the cores that have at least one of these CPUs. All cores if none has: then the places
// are made up, or the mask is of another machine.
std::vector<int> usable_cores(const Places& places, std::span<const int> cpus);

// For `workers` on the usable cores; more than there are cores share them.
SpreadBounds worker_bounds(const Places& places, std::span<const int> usable, int workers);
// rank -> core. A spread out of bounds is moved to the nearer one.
std::vector<int> seat_workers(const Places& places, std::span<const int> usable, int workers,
                              int spread);

// The same as the approach maps threads that are on the cores `now`: a thread stays where its core
// is not usable. Empty: the approach leaves it to seat_workers.
std::vector<int> mapped(const Places& places, std::span<const int> usable, std::span<const int> now,
                        int spread, const Approach& approach);

// The same for `threads` of the workers.
SpreadBounds member_bounds(const Places& places, std::span<const int> core_of_worker, int threads);
std::vector<int> member_cores(const Places& places, std::span<const int> core_of_worker,
                              int threads, int spread);
// As many workers as there are cores, on these where possible: their ranks, sorted.
std::vector<int> members_on(std::span<const int> cores, std::span<const int> core_of_worker);

}  // namespace atl::runtime
