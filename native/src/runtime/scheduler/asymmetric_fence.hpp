// A pair of fences, one almost free and one expensive, for a side that runs often and one that runs
// rarely (Dice, Huang and Yang, "Asymmetric Dekker Synchronization", 2001; Linux membarrier(2)).
//
// With membarrier, light_fence() only keeps the compiler from reordering, and heavy_fence() makes
// the kernel run a full barrier on every CPU that runs a thread of this process.
// Without it (before Linux 4.14, or under a seccomp filter), both are seq_cst fences.
#pragma once

#include <atomic>
#include <cstdint>

#include "atoll/runtime/asymmetric_fence.hpp"

namespace atl::runtime {

// Finds out which of the two applies; the first call counts. Call it before starting the first
// thread that uses a fence. A child of fork() keeps what the parent registered.
void choose_fences();

// The counterpart of detail::light_fence(). Threads that call it at the same time share one
// membarrier, which interrupts every CPU of the process.
void heavy_fence();

// A full fence right after a locked instruction, which is one on x86.
inline void fence_after_locked() {
#if defined(__x86_64__)
  std::atomic_signal_fence(std::memory_order_seq_cst);
#else
  detail::full_fence();
#endif
}

// Membarriers of this process so far.
std::uint32_t membarriers() noexcept;

// A barrier for several threads at once. One that begins after a thread has asked serves it,
// whoever runs it. (As synchronize_rcu_expedited of Linux combines grace periods.)
class CombinedBarrier {
 public:
  using Ticket = std::uint32_t;

  constexpr explicit CombinedBarrier(void (*run)()) : run_(run) {}

  // The barrier that surely begins after what this thread did until now.
  Ticket ask() noexcept {
    detail::full_fence();  // stores of this thread before the look at what has begun
    return begun_.load(std::memory_order_seq_cst) + 1;
  }
  // Returns when that barrier is over; runs it if nobody else runs one.
  void await(Ticket ticket) noexcept;
  std::uint32_t runs() const noexcept { return begun_.load(std::memory_order_relaxed); }
  // In a child of fork(), where no other thread runs one.
  void renew() noexcept;

 private:
  void (*const run_)();
  std::atomic<std::uint32_t> begun_{0};
  std::atomic<std::uint32_t> ended_{0};
  std::atomic<bool> running_{false};
};

}  // namespace atl::runtime
