// The members of groups as the workers sit now. It remembers what it has computed until the workers
// move, because groups come and go far more often. One thread at a time.
//
// Costs O(cores) for a number of threads or a spread that is new since the last move, else
// O(log(numbers seen)).
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "atoll/runtime/controller.hpp"
#include "seating.hpp"
#include "seats.hpp"

namespace atl::runtime {

using Ranks = std::shared_ptr<const std::vector<int>>;  // sorted

class GroupSeats {
 public:
  explicit GroupSeats(const Seats& seats) : seats_(seats) {}

  // Call it first: forgets what it knows if this is not the placement for which it was computed
  // (Team::placement).
  void follow(std::size_t placement);

  SpreadBounds limits(int threads);
  // For a group whose members are `now`, which may be none; `approach` may map them in its own way.
  Ranks members(int threads, int spread, std::span<const int> now, const Approach& approach);

 private:
  const Seats& seats_;
  std::size_t placement_ = 0;
  std::vector<int> core_of_worker_;
  std::map<int, SpreadBounds> limits_;            // by threads
  std::map<std::pair<int, int>, Ranks> members_;  // by threads and spread
};

}  // namespace atl::runtime
