// Which rank sits on which core, by a spread rate: how many chiplets a group of threads uses.
//
// The idea is algorithm 2 of ARCAS (Fogli et al., arXiv 2503.11460, 2025, section 4.2), made to
// hold for chiplets of any sizes; docs/runtime-mapping.md tells what is wrong with it as printed.
//
// What it promises, for `threads` ranks and a `spread`:
//  - exactly min(spread, threads) chiplets are used; a RuntimeFault if they cannot hold the threads
//  - no two ranks on one core; the ranks of a chiplet are consecutive
//  - no chiplet that is not full has two ranks fewer than another
//  - walking the ranks, all chiplets of a node are used before the first of the next node
//  - the same places and numbers give the same mapping; pure
//
// Chiplets are taken in one order: the largest node first (by cores; packages and nodes stay
// together), in it the largest chiplet first, otherwise as numbered. So a spread of k + 1 uses the
// chiplets of k and one more, and fewer threads move. Only where the first k cannot hold the
// threads are the k with the most cores taken that the order of nodes allows.
//
// More threads than cores are the caller's: it maps as many as there are cores, and lets the others
// double up as it sees fit.
#pragma once

#include <vector>

#include "atoll/runtime/export.hpp"
#include "atoll/runtime/places.hpp"

namespace atl {

// rank -> index of a core. RuntimeFault: fewer than one thread, more threads than cores, a spread
// outside 1..chiplets(), or min(spread, threads) chiplets that cannot hold the threads.
// O(cores + chiplets^2).
ATOLL_EXPORT std::vector<int> spread_cores(const Places& places, int threads, int spread);

// The smallest spread that holds the threads ('static local'; 'static distributed' is
// places.chiplets()). Every spread from it to chiplets() holds them. RuntimeFault: fewer than one
// thread, or more than there are cores.
ATOLL_EXPORT int min_spread(const Places& places, int threads);

}  // namespace atl
