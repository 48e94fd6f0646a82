// `pipe`: bandwidth from one CPU to another, through a buffer that one writes and the other reads.
//
// The producer writes every line of the buffer and signals the consumer, which reads them all with
// its widest loads from the producer's cache (olap-on-chiplets 2.4). The figure is the buffer size
// divided by the reading time. The consumer sums up what it reads and compares the sum with what
// the producer wrote, which differs in every transfer.
// The buffer is on the node where `home` first touched it. With `null` the consumer reads its first
// line repeatedly, which measures the loop without any transfer.
#pragma once

#include "protocol.hpp"

namespace atl::probe {

Json pipe(const Request& request);

}  // namespace atl::probe
