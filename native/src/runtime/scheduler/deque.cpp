#include "atoll/runtime/deque.hpp"

#include "asymmetric_fence.hpp"

namespace atl::detail {

// While one thread is in here, nobody else closes the part of a deque of which nothing is public.
// So if it is still closed at the end, it has been so all the time, and each pop since has waited
// or is seen in bottom.
void Deque::force() {
  Ends open = ends_.load(std::memory_order_relaxed);
  if (open.split != open.top || looks_empty()) return;
  if (forced_.load(std::memory_order_relaxed) ||
      forced_.exchange(true, std::memory_order_acquire)) {  // [force-lock]
    return;
  }
  Ends closed = open.when_closed();
  if (ends_.compare_exchange_strong(open, closed, std::memory_order_relaxed)) {  // [force-close]
    runtime::heavy_fence();                                                      // [force-fence]
    // Acquire: the words that were pushed.
    const Index bottom = bottom_.load(std::memory_order_acquire);  // [force-look]
    const auto words = static_cast<std::int32_t>(bottom - open.split);
    const Index more = words > 0 ? static_cast<Index>(words + 1) / 2 : 0;
    // Release: the words, to those who take them. Fails if the owner has opened it.
    ends_.compare_exchange_strong(closed, {open.split + more, open.top}, std::memory_order_release,
                                  std::memory_order_relaxed);  // [force-open]
  }
  forced_.store(false, std::memory_order_release);
}

}  // namespace atl::detail
