// Places ranks on cores by a spread: the number of chiplets that a group of threads uses.
//
// The idea is algorithm 2 of ARCAS (Fogli et al., arXiv 2503.11460, 2025, section 4.2), extended to
// chiplets of any size; docs/runtime-mapping.md explains what is wrong with the printed version.
//
// What it promises, for `threads` ranks and a `spread`:
//  - exactly min(spread, threads) chiplets are used; throws RuntimeFault if they have too few cores
//  - no two ranks on one core; the ranks of a chiplet are consecutive
//  - no chiplet that is not full has two ranks fewer than another
//  - walking the ranks, all chiplets of a node are used before the first of the next node
//  - the result depends only on the places and the numbers
//
// Chiplets are taken in one order: the largest node first (by cores; packages and nodes stay
// together), in it the largest chiplet first, otherwise as numbered. So a spread of k + 1 adds one
// chiplet to those of k, and fewer threads move. Only if the first k have too few cores are the k
// with the most cores taken that the order of nodes allows.
//
// The caller handles more threads than cores: it maps as many as there are cores, then places the
// others as it chooses.
#pragma once

#include <vector>

#include "atoll/runtime/export.hpp"
#include "atoll/runtime/places.hpp"

namespace atl {

// Returns the index of a core for each rank. Throws RuntimeFault if there are fewer than one thread
// or more threads than cores, if the spread is outside 1..chiplets(), or if min(spread, threads)
// chiplets have too few cores. O(cores + chiplets^2).
ATOLL_EXPORT std::vector<int> spread_cores(const Places& places, int threads, int spread);

// The smallest spread with room for the threads ('static local'; 'static distributed' is
// places.chiplets()). Each spread from it to chiplets() has room. Throws RuntimeFault if there are
// fewer than one thread or more threads than cores.
ATOLL_EXPORT int min_spread(const Places& places, int threads);

}  // namespace atl
