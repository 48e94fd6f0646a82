// Which workers a worker steals from, nearest first: rings of workers by distance.
//
// A ring is all workers that are equally far from the thief: on its own chiplet (its own core
// included), then the other chiplets of its node by level, then other nodes by level. Nodes come
// before levels, so that a noisy profile sends no thief to another node's memory first. The
// scheduler chooses within a ring. Stealing near first is an old idea (Olivier et al., "Scheduling
// Task Parallelism on Multi-Socket Multicore Systems", ROSS 2011); levels between chiplets come
// from a profile if there is one. Pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "atoll/runtime/export.hpp"
#include "atoll/runtime/places.hpp"

namespace atl {

// How a steal is counted, seen from the thief. Without a profile, a node's other chiplets are all
// equally far, and none is `near`.
enum class Distance : std::uint8_t {
  chiplet,    // the thief's own chiplet
  near,       // its node, and nearer than the node's farthest chiplets
  node,       // its node, the farthest
  elsewhere,  // another node
};
inline constexpr std::size_t kDistances = 4;

// Between two chiplets. Throws RuntimeFault if one does not exist. O(chiplets).
ATOLL_EXPORT Distance steal_distance(const Places& places, int thief, int victim);

struct VictimRing {
  Distance distance = Distance::chiplet;
  int begin = 0;  // its part of VictimOrder::workers
  int end = 0;    // never empty
  bool operator==(const VictimRing&) const = default;
};

struct VictimOrder {
  std::vector<int> workers;  // all but the thief, each once; sorted within a ring
  std::vector<VictimRing> rings;
  bool operator==(const VictimOrder&) const = default;

  [[nodiscard]] std::span<const int> of(const VictimRing& ring) const {
    return std::span(workers).subspan(static_cast<std::size_t>(ring.begin),
                                      static_cast<std::size_t>(ring.end - ring.begin));
  }
};

// `core_of_worker[w]`: the core of worker w; several workers may share one. `thief` is a worker.
// Throws RuntimeFault if a core or worker does not exist. O(workers log workers).
ATOLL_EXPORT VictimOrder victims(const Places& places, std::span<const int> core_of_worker,
                                 int thief);

}  // namespace atl
