// `load`: the latency that one CPU sees while others load the memory.
//
// As Intel MLC's loaded latency: a chaser (chase.hpp) and loaders that read lines one after
// another with a `gap` of spin steps, about a cycle each, between two lines. A small gap gives the
// top of the curve of latency over bandwidth, a large one its flat begin, null its idle point.
// The chaser has `bytes` to itself; the loaders share as much again, each its own part, so both
// must be large against the caches for memory to be what is loaded.
#pragma once

#include <cstddef>

#include "protocol.hpp"

namespace atl::probe {

// `gbs` is one figure: what all loaders together read while the samples were taken.
Json load(const Request& request);

// Reads one word of each line of `lines`; `gap` steps after each. Returns the sum of the words.
std::uint64_t load_lines(const std::byte* data, std::size_t lines, std::uint64_t gap,
                         bool null_run);

}  // namespace atl::probe
