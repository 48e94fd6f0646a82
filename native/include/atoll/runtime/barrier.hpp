// A barrier: each party waits until all have arrived; then the barrier can be used again.
//
//   atl::Barrier barrier(4, [&] { std::swap(now, next); });
//   ... in each party, over and over: step(part); barrier.arrive_and_wait();
//
// Arrivals take tickets, and a second word, on its own cache line, counts the tickets that were let
// through (after the central barrier of Mellor-Crummey and Scott, "Algorithms for scalable
// synchronization", 1991). With more than 16 parties, a tree: those on eight neighbouring cores,
// such as a chiplet's, take tickets of a leaf, and the first of them brings all that have come
// meanwhile to the root (Yew, Tzeng and Lawrie, "Distributing hot-spot addressing", 1987). So eight
// cores share a line, and only one of them at a time uses the line that all share. The last one
// lets the leaves through, each by its own word.
//
// A party that arrives spins if all missing parties may be running on other workers and nothing
// else waits for its worker: for at most 2 us and half a microsecond for each that is missing, and
// 20 us in all (the more parties, the longer a phase takes). Then it is suspended. The last one
// makes those that are ready and wakes one worker, which wakes two more, and so on, and so the
// threads: two system calls for 256 parties. Who is woken but gets no CPU holds up those that it is
// to wake.
//
// Promises
//  - What a party wrote before it arrived is visible to all parties after the wait.
//  - The completion runs once per phase, in a party of it, after all have arrived and before any
//    party continues. If it throws, the program ends, as with std::barrier.
//  - A party is a task, or a thread that is not a worker; parties may differ from phase to phase.
//  - More than `parties` may be on their way: each phase lets `parties` of them through, those that
//    arrived first, and the others belong to the next phases.
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
  // Throws RuntimeFault if there are fewer than 1 parties or more than 2^30 - 1.
  ATOLL_EXPORT explicit Barrier(std::ptrdiff_t parties, std::function<void()> completion = {});
  ATOLL_EXPORT ~Barrier();
  Barrier(const Barrier&) = delete;
  Barrier& operator=(const Barrier&) = delete;

  void arrive_and_wait() {
    if (leaves_ != nullptr) return arrive_in_tree();
    // Acquire and release: the last party passes on what all wrote.
    const std::uint32_t ticket = arrived_.fetch_add(kOne, std::memory_order_acq_rel);
    const std::uint32_t passed = passed_.load(std::memory_order_acquire) & ~kWaited;
    if (ticket + kOne - passed == all_) {
      end_phase(passed);
    } else {
      wait(ticket);
    }
  }

 private:
  // Words count tickets from 0 and wrap. In words of those that wait, the lowest bit is a flag.
  static constexpr std::uint32_t kWaited = 1;  // somebody may be suspended
  static constexpr std::uint32_t kOne = 2;     // a ticket
  static constexpr std::size_t kApart = 128;

  struct Leaf;

  // The caller has the last ticket of the phase that begins with ticket `passed`.
  void end_phase(std::uint32_t passed) {
    if (completion_) complete();
    let_through(passed);
  }
  void let_through(std::uint32_t passed) {
    if ((passed_.exchange(passed + all_, std::memory_order_acq_rel) & kWaited) != 0) wake(passed_);
  }

  ATOLL_EXPORT void wait(std::uint32_t ticket);
  ATOLL_EXPORT void arrive_in_tree();
  void bring(Leaf& leaf);
  std::uint32_t admit(Leaf& leaf, std::uint32_t most);
  void end_phase_in_tree();
  ATOLL_EXPORT void complete() noexcept;
  ATOLL_EXPORT static void wake(const std::atomic<std::uint32_t>& passed);

  alignas(kApart) std::atomic<std::uint32_t> arrived_{0};  // tickets taken; in a tree: brought
  alignas(kApart) std::atomic<std::uint32_t> passed_{0};   // tickets of phases that have ended
  alignas(kApart) const std::uint32_t all_;                // tickets of a phase
  std::uint32_t leaf_count_ = 0;
  std::unique_ptr<Leaf[]> leaves_;  // null if there are few parties
  const std::function<void()> completion_;
};

}  // namespace atl
