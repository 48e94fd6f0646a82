// On which chiplets workers sit.
#pragma once

#include <set>
#include <span>

#include "atoll/runtime/options.hpp"
#include "atoll/runtime/places.hpp"

namespace atl::duckdb {

inline int chiplet_of(const Places& places, const Seat& seat) {
  return places.cores[static_cast<std::size_t>(seat.core)].chiplet;
}

inline int chiplets_of(const Places& places, std::span<const Seat> seats) {
  std::set<int> chiplets;
  for (const Seat& seat : seats) chiplets.insert(chiplet_of(places, seat));
  return static_cast<int>(chiplets.size());
}

}  // namespace atl::duckdb
