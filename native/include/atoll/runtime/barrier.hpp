// A barrier: parties wait until all of them have arrived; then it is ready for the next time.
//
//   atl::Barrier barrier(4, [&] { std::swap(now, next); });
//   ... in each party, over and over: step(part); barrier.arrive_and_wait();
//
// A central counter and a phase on lines of their own (Mellor-Crummey and Scott, "Algorithms for
// scalable synchronization", 1991). With many parties, arrivals are counted per chiplet first, so
// that one line is not torn between all cores. Who arrives spins for at most 2 us, but only if all
// that are missing may be running right now on other workers; then it is suspended.
//
// Promises
//  - What was written before anyone's arrival is seen by everyone after it.
//  - The completion runs once per phase, in the party that arrives last, before anyone goes on. An
//    exception of it ends the program, as in std::barrier.
//  - Parties are tasks or threads that are no workers, not the same ones each time.
//  - May be destroyed as soon as every wait of the last phase has returned.
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
  // RuntimeFault: fewer than 1.
  ATOLL_EXPORT explicit Barrier(std::ptrdiff_t parties, std::function<void()> completion = {});
  ATOLL_EXPORT ~Barrier();
  Barrier(const Barrier&) = delete;
  Barrier& operator=(const Barrier&) = delete;

  void arrive_and_wait() {
    // Relaxed: before its own arrival the phase cannot end, and it knows of the last one's end.
    const std::uint32_t phase = phase_.load(std::memory_order_relaxed) & ~kWaited;
    if (leaves_ != nullptr) return arrive_in_tree(phase);
    // Acquire and release: the last one hands on what all wrote.
    const std::uint32_t missing = left_.fetch_sub(1, std::memory_order_acq_rel) - 1;
    if (missing == 0) {
      // Relaxed: seen with the next phase.
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
    // From here on *this may be gone, but for who is suspended.
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
  std::unique_ptr<Leaf[]> leaves_;  // null with few parties
  const std::function<void()> completion_;
};

}  // namespace atl
