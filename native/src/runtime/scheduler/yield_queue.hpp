// A worker's tasks that have yielded: a first-in, first-out ring of words, used mostly by its
// owner, from which an idle worker may take some.
//
// The lock is biased towards the owner (Dice, Huang and Yang, "Asymmetric Dekker Synchronization",
// 2001; Kawachiya, Koseki and Onodera, "Lock Reservation", OOPSLA 2002): entering is a store and a
// load, leaving a store, with a fence between them that is free with membarrier. A thief pays a
// heavy fence (a system call), does not wait, and excludes other thieves.
//
// What it promises
//  - Words come out in the order in which they went in, each once.
//  - steal never waits: with the owner or another thief inside, it takes nothing.
//  - The owner waits for a thief that is inside: for tens of ns, or, if that thread was preempted
//    there, until it runs again. A thief at its fence also makes it wait, so check size_hint
//    before.
//  - push throws std::bad_alloc if the ring cannot grow, and then changes nothing.
//
// native/models/yield_queue.pml models the lock with store buffers; both use the same labels, such
// as [owner-fence].
#pragma once

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "asymmetric_fence.hpp"
#include "waiting/spin.hpp"

namespace atl::runtime {

class YieldQueue {
 public:
  using Word = std::uint64_t;

  // Owner.
  void push(Word word) {
    const OwnerInside inside(*this);
    put(word);
  }

  // Owner. The oldest word, or 0 if there is none.
  Word pop() {
    if (size_hint() == 0) return 0;  // exact: only the owner adds
    const OwnerInside inside(*this);
    return size_hint() == 0 ? 0 : take();
  }

  // Owner. Takes the oldest word, if there is one and it is `wanted`, and puts `word` in at the
  // end; else, or with a thief inside, changes nothing and gives 0. After an exchange thieves are
  // shut out until the flag is down, so that `word` may name a fiber that is yet to be suspended.
  template <class Wanted>
  Word begin_exchange(Word word, Wanted&& wanted) {
    if (!enter()) [[unlikely]] {
      leave();
      return 0;
    }
    const std::uint64_t head = head_.load(std::memory_order_relaxed);
    const std::uint64_t tail = tail_.load(std::memory_order_relaxed);
    Word* const ring = ring_.get();
    const Word taken = ring[head & mask_];
    if (head == tail || !wanted(taken)) {
      leave();
      return 0;
    }
    ring[tail & mask_] = word;  // of a full ring, where the other one was
    tail_.store(tail + 1, std::memory_order_relaxed);
    // Release, and last: who sees that the oldest is gone sees that another had come, so that one
    // word that is exchanged never looks like none to a worker that is about to sleep.
    head_.store(head + 1, std::memory_order_release);
    return taken;
  }
  std::atomic<bool>& inside() { return owner_inside_; }

  // Any other thread. Takes the oldest words, at most half of them rounded up and no more than fit
  // into `into`, up to the first word that is not allowed. Returns their number.
  template <class Allowed>
  std::size_t steal(std::span<Word> into, Allowed&& allowed) {
    if (!thief_enters()) return 0;
    const std::size_t most = std::min((size_hint() + 1) / 2, into.size());
    std::size_t taken = 0;
    while (taken < most && allowed(oldest())) into[taken++] = take();
    thief_leaves();
    return taken;
  }

  // Any other thread. Whether the oldest word is allowed; also true if it cannot look.
  template <class Allowed>
  bool offers(Allowed&& allowed) {
    if (size_hint() == 0) return false;
    if (!thief_enters()) return true;
    const bool found = size_hint() != 0 && allowed(oldest());
    thief_leaves();
    return found;
  }

  // Any thread; exact inside the lock. Outside, it may read the head before and the tail after
  // others' changes: then it is too large, but never 0 while there is a word throughout.
  std::size_t size_hint() const {
    const std::uint64_t head = head_.load(std::memory_order_acquire);  // see begin_exchange
    const std::uint64_t tail = tail_.load(std::memory_order_relaxed);
    return tail < head ? 0 : static_cast<std::size_t>(tail - head);
  }

 private:
  static constexpr std::size_t kFirstCapacity = 64;  // a power of two, as all capacities

  struct OwnerInside {
    explicit OwnerInside(YieldQueue& queue) : queue(queue) {
      if (!queue.enter()) [[unlikely]]
        queue.await_thief();
    }
    ~OwnerInside() { queue.leave(); }
    YieldQueue& queue;
  };

  // False: a thief is inside, and will be gone soon.
  bool enter() {
    owner_inside_.store(true, std::memory_order_relaxed);  // [owner-store]
    detail::light_fence();                                 // [owner-fence]
    // Acquire: what the last thief did inside.
    return !thief_inside_.load(std::memory_order_acquire);  // [owner-look]
  }

  // Release: to the next thief who reads it.
  void leave() { owner_inside_.store(false, std::memory_order_release); }

  bool thief_enters() {
    // Saves the fence, and the owner's wait for it, if it would be in vain.
    if (owner_inside_.load(std::memory_order_relaxed)) return false;
    // Acquire: what the last thief did.
    if (thief_inside_.exchange(true, std::memory_order_acquire)) return false;  // [thief-store]
    heavy_fence();                                                              // [thief-fence]
    // Acquire: what the owner did inside.
    if (!owner_inside_.load(std::memory_order_acquire)) return true;  // [thief-look]
    thief_leaves();
    return false;
  }

  // Release: to the owner and to the next thief.
  void thief_leaves() { thief_inside_.store(false, std::memory_order_release); }

  // The owner's flag is up, so a thief that comes now leaves at once, and one that is inside leaves
  // soon unless its thread was preempted: then it needs the CPU time more than the spinning.
  [[gnu::noinline, gnu::cold]] void await_thief() {
    constexpr int kPauses = 1000;  // longer than a heavy fence
    int pauses = 0;
    while (thief_inside_.load(std::memory_order_acquire)) {
      if (++pauses > kPauses) {
        sched_yield();
      } else {
        pause();
      }
    }
  }

  // All below: inside the lock, which orders them; what order there is besides is for size_hint.

  Word oldest() const { return ring_[head_.load(std::memory_order_relaxed) & mask_]; }

  Word take() {
    const std::uint64_t head = head_.load(std::memory_order_relaxed);
    const Word word = ring_[head & mask_];
    head_.store(head + 1, std::memory_order_release);  // see begin_exchange
    return word;
  }

  void put(Word word) {
    const std::uint64_t tail = tail_.load(std::memory_order_relaxed);
    if (tail - head_.load(std::memory_order_relaxed) > mask_) [[unlikely]]
      grow();
    ring_[tail & mask_] = word;
    tail_.store(tail + 1, std::memory_order_relaxed);
  }

  [[gnu::noinline, gnu::cold]] void grow() {
    const std::uint64_t grown_mask = 2 * mask_ + 1;
    auto grown = std::make_unique_for_overwrite<Word[]>(grown_mask + 1);
    const std::uint64_t tail = tail_.load(std::memory_order_relaxed);
    for (std::uint64_t at = head_.load(std::memory_order_relaxed); at != tail; ++at) {
      grown[at & grown_mask] = ring_[at & mask_];
    }
    ring_ = std::move(grown);
    mask_ = grown_mask;
  }

  // Apart from the owner's line, so that a thief's try does not take that away.
  alignas(128) std::atomic<bool> thief_inside_{false};
  alignas(128) std::atomic<bool> owner_inside_{false};
  std::atomic<std::uint64_t> head_{0};
  std::atomic<std::uint64_t> tail_{0};
  std::uint64_t mask_ = kFirstCapacity - 1;
  std::unique_ptr<Word[]> ring_ = std::make_unique_for_overwrite<Word[]>(kFirstCapacity);
};

}  // namespace atl::runtime
