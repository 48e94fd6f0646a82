#include "trace_ring.hpp"

#include <algorithm>

namespace atl::runtime {

std::vector<TraceEvent> TraceRing::copy(std::uint64_t& lost) const {
  const std::uint64_t end = written_.load(std::memory_order_acquire);
  const std::uint64_t begin = lost_of(end);
  std::vector<TraceEvent> events;
  events.reserve(end - begin);
  for (std::uint64_t i = begin; i < end; ++i) {
    const Slot& slot = slots_[i & (slots_.size() - 1)];
    const std::uint64_t when = slot.when.load(std::memory_order_acquire);
    events.push_back({static_cast<std::int64_t>(when >> 8), static_cast<TraceKind>(when & 0xff),
                      slot.value.load(std::memory_order_acquire)});
  }
  // What the writer overwrote meanwhile, or is overwriting.
  const std::uint64_t whole = std::min(end, lost_of(written_.load(std::memory_order_relaxed)));
  events.erase(events.begin(), events.begin() + static_cast<std::ptrdiff_t>(whole - begin));
  lost = whole;
  return events;
}

std::uint64_t TraceRing::lost() const noexcept {
  return lost_of(written_.load(std::memory_order_relaxed));
}

}  // namespace atl::runtime
