// `ping`: one-way latency between two CPUs, measured with a cache line that goes back and forth.
//
// Each thread waits until the flag on the line is its own and gives it to the other, K times per
// sample. One way is half a round trip (arcas-runtime 2.1; olap-on-chiplets 2.3). There are two
// methods:
//   cas    compare-and-swap until it succeeds, like taking a spin lock. The same loop as in
//          core-to-core-latency 1 (crate), so that the figures are comparable.
//   store  read until it is ours, then store: acquire and release, as in a queue.
// The line is on the node where `home` first touched it. On two-socket EPYC machines this matters
// by a factor of two, because requests go through the home's directory.
// A sample during which a thread lost its CPU times the scheduler and not the line. It is repeated
// and counted (`interrupted`), and kept only if four budgets gave nothing better.
// K is chosen so that a sample takes about 25 µs, or less with a small budget. With `null` one
// thread plays both sides on its own line, which measures the loop without any transfer.
#pragma once

#include "protocol.hpp"

namespace atl::probe {

Json ping(const Request& request);

}  // namespace atl::probe
