// `load`: the latency that one CPU sees while others load the memory.
//
// Like Intel MLC's loaded latency: a chaser (chase.hpp), and loaders that read lines one after
// another with a `gap` of spin steps, about a cycle each, between two lines. A small gap gives the
// upper end of the latency-over-bandwidth curve, a large gap its flat part, null its idle point.
// The chaser has `bytes` to itself. The loaders share the same amount, each with its own part. Both
// must be large compared to the caches, so that the load is on memory.
#pragma once

#include <cstddef>

#include "protocol.hpp"

namespace atl::probe {

// `gbs` is one figure: the bandwidth of all loaders together during the samples.
Json load(const Request& request);

// Reads one word of each line of `lines`, then spins `gap` steps. Returns the sum of the words.
std::uint64_t load_lines(const std::byte* data, std::size_t lines, std::uint64_t gap,
                         bool null_run);

}  // namespace atl::probe
