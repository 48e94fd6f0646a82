// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-or-later
// What time it is in the guest. While simulated CPUs run, its time goes by as their cycles do, so
// its timers fire as often for each million of instructions as on the real machine. Otherwise it
// goes by as the host's does. It never goes back.
//
// A simulated CPU is some hundred times slower than a real one. By the host's time the guest's
// kernel would handle a hundred times as many ticks for the same work of a program, and these would
// be most of what is simulated.
#pragma once

#include <algorithm>
#include <cstdint>
#include <mutex>

namespace atl::cachesim {

class GuestTime {
 public:
  // Nanoseconds. `host`: the host's monotonic time. `cycles`, `mhz`: the time and the clock of the
  // simulated CPU that is furthest. `running`: whether one has run since the last call.
  std::int64_t at(std::int64_t host, std::uint64_t cycles, std::uint64_t mhz, bool running) {
    const std::lock_guard lock(mutex_);
    const auto simulated = static_cast<std::int64_t>(cycles * 1000 / mhz);
    if (simulated > simulated_ || !running) moved_ = host;
    const bool stands = running && host - moved_ > kLongest;
    const std::int64_t of_host = std::max<std::int64_t>(host - host_, 0);
    const std::int64_t of_cycles = std::max<std::int64_t>(simulated - simulated_ - given_, 0);
    now_ += running && !stands ? of_cycles : of_host;
    given_ = stands ? given_ + of_host : simulated > simulated_ ? 0 : given_;
    host_ = std::max(host_, host);
    simulated_ = std::max(simulated_, simulated);
    return now_;
  }

  // Of the host, in which a CPU that runs gets on. A CPU that is thought to run and does not would
  // wait for a timer, and the timer for it.
  static constexpr std::int64_t kLongest = 100'000'000;

 private:
  std::mutex mutex_;
  // The first call is before anything runs.
  std::int64_t host_ = 0, simulated_ = 0, now_ = 0;
  std::int64_t moved_ = 0;  // the host's time when CPUs last got on
  std::int64_t given_ = 0;  // time that went by without them since then
};

}  // namespace atl::cachesim
