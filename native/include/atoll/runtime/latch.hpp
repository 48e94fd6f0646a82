// A latch: waits until a count reaches 0; usable once.
//
//   atl::Latch loaded(parts);
//   ... in each part's task: loaded.count_down();
//   loaded.wait();
//
// Promises
//  - What a thread wrote before `count_down` is visible after the wait.
//  - Tasks and threads that are not workers may use it. It may be destroyed as soon as every wait
//    has returned, even if `count_down` has not.
//  - count_down is one atomic operation; the last one takes two.
#pragma once

#include <atomic>
#include <cstddef>
#include <stop_token>

#include "atoll/runtime/event.hpp"
#include "atoll/runtime/export.hpp"

namespace atl {

class Latch {
 public:
  // Throws RuntimeFault if the count is below 0.
  explicit Latch(std::ptrdiff_t count) : left_(count) {
    if (count < 0) fault_below_zero();
    if (count == 0) done_.set();
  }
  Latch(const Latch&) = delete;
  Latch& operator=(const Latch&) = delete;

  // Throws RuntimeFault if the count would fall below 0, or `by` is below 0.
  void count_down(std::ptrdiff_t by = 1) {
    if (by < 0) [[unlikely]]
      fault_below_zero();
    // Acquire and release: the last call passes on what all wrote.
    const std::ptrdiff_t before = left_.fetch_sub(by, std::memory_order_acq_rel);
    if (before == by && by != 0) {
      done_.set();
    } else if (before < by) [[unlikely]] {
      fault_below_zero();
    }
  }

  bool try_wait() const { return done_.is_set(); }
  void wait() { done_.wait(); }
  // Returns whether the count has reached 0.
  bool wait(const std::stop_token& stop) { return done_.wait(stop); }

  void arrive_and_wait() {
    count_down();
    wait();
  }

 private:
  [[noreturn]] ATOLL_EXPORT static void fault_below_zero();

  std::atomic<std::ptrdiff_t> left_;
  Event done_;
};

}  // namespace atl
