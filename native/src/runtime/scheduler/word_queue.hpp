// A first-in, first-out queue of words that any thread may fill and any thread may empty. It links
// the jobs and fibers that the words point to, so a push needs no memory and cannot fail.
//
// Producers push onto a stack by one CAS. A consumer shuts others out by a mark in place of the
// list that it takes from; when that list is used up, it takes the whole stack and turns it round.
//
// What it promises
//  - Words come out in the order in which they went in, each once.
//  - Nothing waits: a pop that finds another consumer inside takes nothing.
//  - A word that is in the queue throughout a call of looks_empty() makes that false.
//  - The link of a word that comes out is 0.
//
// native/models/word_queue.pml models this file with store buffers; both use the same labels, such
// as [queue-mark].
#pragma once

#include <atomic>
#include <utility>

#include "atoll/runtime/detail/worker.hpp"
#include "stacks/fiber.hpp"

namespace atl::runtime {

using detail::Word;

class WordQueue {
 public:
  void push(Word word) noexcept {
    Word newest = inbox_.load(std::memory_order_relaxed);
    do {
      link_of(word) = newest;
      // Release, and a read-modify-write: a consumer that reads a later push sees this one, too.
    } while (!inbox_.compare_exchange_weak(newest, word, std::memory_order_release,
                                           std::memory_order_relaxed));  // [queue-push]
  }

  // 0 if there is no word, or if another thread is inside.
  Word pop() noexcept {
    if (looks_empty()) return 0;
    // Acquire: what the last consumer did to the list.
    Word first = list_.exchange(kTaken, std::memory_order_acquire);  // [queue-mark]
    if (first == kTaken) return 0;
    if (first == 0) first = take_inbox();
    Word rest = 0;
    if (first != 0) rest = std::exchange(link_of(first), 0);
    list_.store(rest, std::memory_order_release);  // [queue-unmark]
    return first;
  }

  // Any thread. The stack first: who sees it empty because a consumer took it sees the mark, or
  // what is left of the list.
  bool looks_empty() const noexcept {
    return inbox_.load(std::memory_order_acquire) == 0 &&  // [queue-look-inbox]
           list_.load(std::memory_order_relaxed) == 0;     // [queue-look-list]
  }

 private:
  static constexpr Word kTaken = ~Word{0};  // no word

  static Word& link_of(Word word) noexcept {
    void* const pointer = detail::pointer_of(word);
    return detail::kind_of(word) == detail::WordKind::fiber
               ? static_cast<Fiber*>(pointer)->link
               : static_cast<detail::Job*>(pointer)->link;
  }

  // Acquire: what the words point to. Release: the mark, see looks_empty.
  Word take_inbox() noexcept {
    Word older = inbox_.exchange(0, std::memory_order_acq_rel);  // [queue-take]
    Word newer = 0;
    while (older != 0) {
      const Word word = older;
      older = std::exchange(link_of(word), newer);
      newer = word;
    }
    return newer;
  }

  // Two lines, as in deque.hpp.
  alignas(128) std::atomic<Word> inbox_{0};  // newest first
  std::atomic<Word> list_{0};                // oldest first
};

}  // namespace atl::runtime
