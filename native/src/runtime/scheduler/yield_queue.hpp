// A worker's tasks that have yielded: a first-in, first-out ring of words, used mostly by its
// owner, from which an idle worker may take some. Besides, under the same lock, a place for one
// word, the task that goes next (as Go's runnext: Vyukov, 2015).
//
// The lock is biased towards the owner (Dice, Huang and Yang, "Asymmetric Dekker Synchronization",
// 2001; Kawachiya, Koseki and Onodera, "Lock Reservation", OOPSLA 2002): entering is a store and a
// load, leaving a store, with a fence between them that is free with membarrier. A thief pays a
// heavy fence (a system call), does not wait, and excludes other thieves.
//
// What it promises
//  - Words come out in the order in which they went in, each once.
//  - steal never waits: with the owner or another thief inside, it takes nothing. Call it where
//    `offers` holds, because its fence makes the owner wait.
//  - The owner waits for a thief that is inside or at its fence, a microsecond or two, or, if that
//    thread was preempted there, until it runs again. Meanwhile its flag is down, so that the thief
//    takes what it has paid for: an owner that comes every few ns would turn away all of them.
//  - push throws std::bad_alloc if the ring cannot grow, and then changes nothing.
//
// native/models/yield_queue.pml models the lock with store buffers; both use the same labels, such
// as [owner-fence].
#pragma once

#include <sched.h>

#include <algorithm>
#include <array>
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

  YieldQueue() { adopt(std::make_unique<Ring>(kFirstCapacity)); }

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

  // Owner. Puts `word` into the place of the one that goes next; false: it is taken. Without the
  // lock: only the owner fills it, and only where it is empty, and thieves only empty it.
  bool put_next(Word word) {
    if (next_.load(std::memory_order_relaxed) != 0) return false;
    // Release: what the word points to, to a thief.
    next_.store(word, std::memory_order_release);  // [next-put]
    return true;
  }

  bool has_next() const { return next_.load(std::memory_order_relaxed) != 0; }

  // Owner. The word that goes next, or 0.
  Word take_next() {
    if (!has_next()) return 0;  // exact: only the owner fills it
    const OwnerInside inside(*this);
    const Word word = next_.load(std::memory_order_relaxed);
    next_.store(0, std::memory_order_relaxed);
    return word;
  }

  // Any thread, without the lock. Whether there is a word that goes next and it is allowed.
  template <class Allowed>
  bool offers_next(Allowed&& allowed) const {
    const Word word = next_.load(std::memory_order_relaxed);
    return word != 0 && allowed(word);
  }

  // Any other thread. As `steal`, the word that goes next.
  template <class Allowed>
  Word steal_next(Allowed&& allowed) {
    if (!thief_enters()) return 0;
    Word word = next_.load(std::memory_order_acquire);  // [next-steal]
    if (word != 0 && allowed(word)) {
      next_.store(0, std::memory_order_relaxed);
    } else {
      word = 0;
    }
    thief_leaves();
    return word;
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
    const Word taken = head == tail ? 0 : slot(head).load(std::memory_order_relaxed);
    if (taken == 0 || !wanted(taken)) {
      leave();
      return 0;
    }
    slot(tail).store(word, std::memory_order_relaxed);  // of a full ring, where the other one was
    tail_.store(tail + 1, std::memory_order_release);
    // Release, and last: who sees that the oldest is gone sees that another had come, so that one
    // word that is exchanged never looks like none to a worker that is about to sleep.
    head_.store(head + 1, std::memory_order_release);
    return taken;
  }
  std::atomic<bool>& inside() { return owner_inside_; }

  // Any other thread. Takes the oldest words that are allowed, at most half of all rounded up and
  // no more than fit into `into`. Passes over a few that are not. Returns their number.
  template <class Allowed>
  std::size_t steal(std::span<Word> into, Allowed&& allowed) {
    if (!thief_enters()) return 0;
    const std::size_t most = std::min((size_hint() + 1) / 2, into.size());
    std::array<Word, kPassesOver> refused;
    std::size_t refusals = 0;
    std::size_t taken = 0;
    const std::uint64_t tail = tail_.load(std::memory_order_relaxed);
    std::uint64_t at = head_.load(std::memory_order_relaxed);
    for (; at != tail && taken < most && refusals < kPassesOver; ++at) {
      const Word word = slot(at).load(std::memory_order_relaxed);
      (allowed(word) ? into[taken++] : refused[refusals++]) = word;
    }
    if (taken > 0) {
      // In their order, before those that were not looked at. Release: to `offers`, which may have
      // read them meanwhile and then sees that the head has moved.
      while (refusals > 0) slot(--at).store(refused[--refusals], std::memory_order_release);
      head_.store(at, std::memory_order_release);  // see begin_exchange
    }
    thief_leaves();
    return taken;
  }

  // Any other thread, without the lock. Whether `steal` would find an allowed word; also true if
  // the oldest was taken meanwhile. Only a word's bits count: what it points to may be gone.
  template <class Allowed>
  bool offers(Allowed&& allowed) const {
    // Acquire: the ring into which the oldest word was put, or a copy of it.
    const std::uint64_t head = head_.load(std::memory_order_acquire);
    // Acquire: the word.
    const std::uint64_t tail = tail_.load(std::memory_order_acquire);
    if (tail <= head) return false;
    const Ring& ring = *shared_.load(std::memory_order_acquire);
    const std::uint64_t end = std::min(tail, head + kPassesOver);
    for (std::uint64_t at = head; at < end; ++at) {
      if (allowed(ring.slots[at & ring.mask].load(std::memory_order_acquire))) return true;
    }
    return head_.load(std::memory_order_relaxed) != head;
  }

  // Any thread; exact inside the lock. Outside, it may read the head before and the tail after
  // others' changes: then it is too large, but never 0 while there is a word throughout.
  std::size_t size_hint() const {
    const std::uint64_t head = head_.load(std::memory_order_acquire);  // see begin_exchange
    const std::uint64_t tail = tail_.load(std::memory_order_relaxed);
    return tail < head ? 0 : static_cast<std::size_t>(tail - head);
  }

 private:
  static constexpr std::uint64_t kFirstCapacity = 64;  // a power of two, as all capacities
  static constexpr std::size_t kPassesOver = 32;

  struct OwnerInside {
    explicit OwnerInside(YieldQueue& queue) : queue(queue) {
      while (!queue.enter()) [[unlikely]]
        queue.give_way();
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

  // A thief is gone soon unless its thread was preempted: then it needs the CPU time more than the
  // spinning.
  [[gnu::noinline, gnu::cold]] void give_way() {
    leave();                       // [owner-give-way]
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

  // All rings are kept, since `offers` may still read an old one; together the old ones are smaller
  // than the current one.
  struct Ring {
    explicit Ring(std::uint64_t capacity)
        : mask(capacity - 1), slots(std::make_unique<std::atomic<Word>[]>(capacity)) {}
    const std::uint64_t mask;
    const std::unique_ptr<std::atomic<Word>[]> slots;
    std::unique_ptr<Ring> older;
  };

  std::atomic<Word>& slot(std::uint64_t at) const { return slots_[at & mask_]; }

  Word take() {
    const std::uint64_t head = head_.load(std::memory_order_relaxed);
    const Word word = slot(head).load(std::memory_order_relaxed);
    head_.store(head + 1, std::memory_order_release);  // see begin_exchange
    return word;
  }

  void put(Word word) {
    const std::uint64_t tail = tail_.load(std::memory_order_relaxed);
    if (tail - head_.load(std::memory_order_relaxed) > mask_) [[unlikely]]
      grow();
    slot(tail).store(word, std::memory_order_relaxed);
    tail_.store(tail + 1, std::memory_order_release);  // see offers
  }

  [[gnu::noinline, gnu::cold]] void grow() {
    auto grown = std::make_unique<Ring>(2 * (mask_ + 1));
    const std::uint64_t tail = tail_.load(std::memory_order_relaxed);
    for (std::uint64_t at = head_.load(std::memory_order_relaxed); at != tail; ++at) {
      grown->slots[at & grown->mask].store(slot(at).load(std::memory_order_relaxed),
                                           std::memory_order_relaxed);
    }
    grown->older = std::move(ring_);
    adopt(std::move(grown));
  }

  void adopt(std::unique_ptr<Ring> ring) {
    ring_ = std::move(ring);
    slots_ = ring_->slots.get();
    mask_ = ring_->mask;
    shared_.store(ring_.get(), std::memory_order_release);
  }

  // Apart from the owner's line, so that a thief's try does not take that away.
  alignas(128) std::atomic<bool> thief_inside_{false};
  alignas(128) std::atomic<bool> owner_inside_{false};
  std::atomic<std::uint64_t> head_{0};
  std::atomic<std::uint64_t> tail_{0};
  std::atomic<Word> next_{0};
  // Those of the current ring.
  std::uint64_t mask_ = 0;
  std::atomic<Word>* slots_ = nullptr;
  std::unique_ptr<Ring> ring_;
  std::atomic<Ring*> shared_{nullptr};
};

}  // namespace atl::runtime
