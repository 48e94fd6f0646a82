// A barrier: each party waits until all have arrived; then the barrier can be used again.
//
//   atl::Barrier barrier(4, [&] { std::swap(now, next); });
//   ... in each party, over and over: step(part); barrier.arrive_and_wait();
//
// A central counter and a phase on separate cache lines (Mellor-Crummey and Scott, "Algorithms for
// scalable synchronization", 1991). With many parties, arrivals are counted per chiplet first, so
// that not all cores compete for one line. A party that arrives spins for at most 2 us if all
// missing parties may be running on other workers; then it is suspended.
//
// Promises
//  - What a party wrote before it arrived is visible to all parties after the wait.
//  - The completion runs once per phase, in the party that arrives last, before any party
//    continues. If it throws, the program ends, as with std::barrier.
//  - A party is a task, or a thread that is not a worker; parties may differ from phase to phase.
//  - The barrier may be destroyed as soon as every wait of the last phase has returned.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "atoll/runtime/export.hpp"

namespace atl {

class Barrier {
 public:
  // Throws RuntimeFault if there are fewer than 1 parties.
  ATOLL_EXPORT explicit Barrier(std::ptrdiff_t parties, std::function<void()> completion = {});
  ATOLL_EXPORT ~Barrier();
  Barrier(const Barrier&) = delete;
  Barrier& operator=(const Barrier&) = delete;

  void arrive_and_wait() {
    // Relaxed: the phase cannot end before this arrival, and the party knows that the last one did.
    const std::uint32_t phase = phase_.load(std::memory_order_relaxed) & ~kWaited;
    if (leaves_ != nullptr) return arrive_in_tree(phase);
    // Acquire and release: the last party passes on what all wrote.
    const std::uint32_t missing = left_.fetch_sub(1, std::memory_order_acq_rel) - 1;
    if (missing == 0) {
      // Relaxed: visible with the next phase.
      left_.store(parties_, std::memory_order_relaxed);
      end_phase(phase);
    } else {
      wait(phase, missing);
    }
  }

 private:
  static constexpr std::uint32_t kWaited = 1;  // somebody may be suspended
  static constexpr std::uint32_t kOnce = 2;    // the rest counts phases
  static constexpr std::size_t kApart = 128;

  struct Leaf;

  void end_phase(std::uint32_t phase) {
    if (completion_) complete();
    // From here on *this may be gone, unless a party is suspended.
    const auto* const address = &phase_;
    if ((phase_.exchange(phase + kOnce, std::memory_order_acq_rel) & kWaited) != 0) wake(address);
  }

  ATOLL_EXPORT void arrive_in_tree(std::uint32_t phase);
  ATOLL_EXPORT void wait(std::uint32_t phase, std::uint32_t missing);
  ATOLL_EXPORT void complete() noexcept;
  ATOLL_EXPORT static void wake(const void* phase);

  alignas(kApart) std::atomic<std::uint32_t> left_;  // parties; with leaves: leaves
  alignas(kApart) std::atomic<std::uint32_t> phase_{0};
  alignas(kApart) const std::uint32_t parties_;
  std::uint32_t leaf_count_ = 0;
  std::unique_ptr<Leaf[]> leaves_;  // null if there are few parties
  const std::function<void()> completion_;
};

}  // namespace atl
