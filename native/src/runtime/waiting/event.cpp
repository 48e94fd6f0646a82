#include "atoll/runtime/event.hpp"

#include "wait_on.hpp"

namespace atl {

bool Event::wait_slow(detail::Deadline deadline, const std::stop_token* stop) {
  std::uint32_t state = state_.load(std::memory_order_acquire);
  const std::uint32_t begun = state & ~kBits;
  for (;;) {
    // Set now, or set and reset since.
    if ((state & kSet) != 0 || (state & ~kBits) != begun) return true;
    if ((state & kWaited) == 0 &&
        !state_.compare_exchange_weak(state, state | kWaited, std::memory_order_acquire)) {
      continue;
    }
    const runtime::WaitEnd end =
        runtime::wait_on(state_, begun | kWaited, {.deadline = deadline, .stop = stop});
    state = state_.load(std::memory_order_acquire);
    if (end == runtime::WaitEnd::stopped || end == runtime::WaitEnd::late) {
      return (state & kSet) != 0 || (state & ~kBits) != begun;
    }
  }
}

// Uses only the address of the event: it may be gone.
void Event::wake() { runtime::wake_all(&state_); }

}  // namespace atl
