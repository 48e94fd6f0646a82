// `pipe`: bandwidth from one CPU to another, by a buffer that one writes and the other reads.
//
// The producer writes every line of the buffer and hands over; the consumer then reads them all,
// with the widest loads that it has, out of the producer's cache (olap-on-chiplets 2.4). The figure
// is the buffer over the time of the reading alone. What was read is summed up, and the sum is
// compared with what the producer wrote: another one for every transfer.
// The buffer lies where `home` first touched it. With `null` the consumer reads its first line
// over and over: how fast the loop is where nothing has to travel.
#pragma once

#include "protocol.hpp"

namespace atl::probe {

Json pipe(const Request& request);

}  // namespace atl::probe
