// The urgent tasks of a team that have not begun, in the order in which they were spawned. Workers
// take them first, each the oldest one that it may run. While there is one, a worker that may not
// run it pays for a lock at each look. It links the jobs, so a push needs no memory.
#pragma once

#include <atomic>
#include <mutex>
#include <utility>

#include "atoll/runtime/detail/worker.hpp"

namespace atl::runtime {

class Urgent {
 public:
  // A job's word. Tell the workers afterwards: Team::inject_urgent.
  void push(detail::Word word) noexcept {
    const std::lock_guard lock(mutex_);
    link_of(word) = 0;
    (first_ == 0 ? first_ : link_of(last_)) = word;
    last_ = word;
    some_.store(true, std::memory_order_relaxed);
  }

  // All that a worker pays while there is none: one load of a line that rarely changes. Relaxed, as
  // with a domain's queue: the lock orders the rest, the fences of Parking order it with sleep.
  bool empty() const { return !some_.load(std::memory_order_relaxed); }

  // Takes the oldest that is `allowed(word)`; 0 if there is none.
  template <class Allowed>
  detail::Word pop(Allowed&& allowed) {
    if (empty()) return 0;
    const std::lock_guard lock(mutex_);
    const auto [before, word] = find(allowed);
    if (word == 0) return 0;
    (before == 0 ? first_ : link_of(before)) = std::exchange(link_of(word), 0);
    if (word == last_) last_ = before;
    some_.store(first_ != 0, std::memory_order_relaxed);
    return word;
  }

  template <class Allowed>
  bool offers(Allowed&& allowed) {
    if (empty()) return false;
    const std::lock_guard lock(mutex_);
    return find(allowed).word != 0;
  }

 private:
  static detail::Word& link_of(detail::Word word) {
    return static_cast<detail::Job*>(detail::pointer_of(word))->link;
  }
  struct Found {
    detail::Word before;  // 0: it is the first
    detail::Word word;    // 0: there is none
  };
  template <class Allowed>
  Found find(Allowed&& allowed) const {
    Found at{0, first_};
    while (at.word != 0 && !allowed(at.word)) at = {at.word, link_of(at.word)};
    return at;
  }

  alignas(128) std::atomic<bool> some_{false};
  std::mutex mutex_;
  detail::Word first_ = 0;
  detail::Word last_ = 0;
};

}  // namespace atl::runtime
