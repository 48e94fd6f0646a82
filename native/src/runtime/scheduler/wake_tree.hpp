// Waking many threads with one system call: they form a binary tree in the order in which they were
// added, and each that is up wakes the next two. The last of n is up after log n steps. (As the
// wake-up tree of the barrier by Mellor-Crummey and Scott, "Algorithms for scalable
// synchronization", 1991.)
//
// The tree links nodes that the threads already have, so it needs no memory and cannot fail.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <utility>

#include "futex.hpp"

namespace atl::runtime {

// Where a thread sleeps until its word says that it may run.
struct WakeNode {
  std::atomic<std::uint32_t> word{0};
  // Until then of who adds it, afterwards of its thread: whom that wakes in turn.
  std::array<WakeNode*, 2> wakes{};
  WakeNode* next = nullptr;  // in the same tree

  // Its thread, first of all that it does when it may run. Returns how many. The others' words say
  // that they may run; if they have seen that by themselves and are elsewhere, this is in vain.
  int wake_others() {
    int count = 0;
    for (WakeNode*& other : wakes) {
      if (other == nullptr) continue;
      futex_wake_one(std::exchange(other, nullptr)->word);
      ++count;
    }
    return count;
  }
};

class WakeTree {
 public:
  bool empty() const { return first_ == nullptr; }

  // Its thread does not run before `let_run`.
  void add(WakeNode& node) {
    node.next = nullptr;
    if (first_ == nullptr) {
      first_ = parent_ = &node;
    } else {
      last_->next = &node;
      const bool full = parent_->wakes[0] != nullptr;
      parent_->wakes[full ? 1 : 0] = &node;  // [tree-link]
      if (full) parent_ = parent_->next;
    }
    last_ = &node;
  }

  // Stores `word` in all of them, which says that they may run, and wakes the first. It has one.
  void let_run(std::uint32_t word) {
    WakeNode& first = *std::exchange(first_, nullptr);
    store(first, word);
    futex_wake_one(first.word);  // [tree-wake]
  }

 private:
  // Those that a node wakes before the node: it may see its own word without being woken, and wake
  // them at once, and if their words did not say so yet, they would sleep on. A node may be gone
  // once its word is stored. Release: whom it wakes, and what the caller published before.
  static void store(WakeNode& node, std::uint32_t word) {
    for (WakeNode* const other : node.wakes) {
      if (other != nullptr) store(*other, word);
    }
    node.word.store(word, std::memory_order_release);  // [tree-run]
  }

  WakeNode* first_ = nullptr;
  WakeNode* last_ = nullptr;
  WakeNode* parent_ = nullptr;  // of the next to come
};

}  // namespace atl::runtime
