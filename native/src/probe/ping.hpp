// `ping`: one-way latency between two CPUs, by a cache line that goes to and fro.
//
// Both threads wait for the one flag on the line to be theirs and give it to the other, K times a
// sample; one way is half a round trip (arcas-runtime 2.1; olap-on-chiplets 2.3). Two ways to wait
// and give:
//   cas    compare-and-swap until it works, as a spin lock is taken. The same loop as
//          core-to-core-latency 1 (crate) has, so that the figures can be compared.
//   store  look until it is ours, then store: acquire and release, as a queue hands over.
// The line lies where `home` first touched it: on EPYC with two sockets that alone is a factor of
// two, for the request goes by way of the home's directory.
// A sample during which one of the two had lost its CPU times the scheduler and not the line: it is
// taken again and counted (`interrupted`), and only kept where four budgets brought nothing better.
// K is such that a sample takes some 25 µs, or less where the budget is small. With `null` one
// thread plays both sides on its own line: what the loop costs where nothing has to travel.
#pragma once

#include "protocol.hpp"

namespace atl::probe {

Json ping(const Request& request);

}  // namespace atl::probe
