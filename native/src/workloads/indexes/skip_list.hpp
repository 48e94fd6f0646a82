// The skip list: a sorted list with express lanes.
//
// Source: Pugh, "Skip Lists: A Probabilistic Alternative to Balanced Trees", CACM 33(6), 1990. In
// numa-query-tuning it is a plain implementation for one thread; here all threads insert, without
// locks: nothing is ever removed, so one compare-and-swap links a node into a level, and a node
// that was once reached stays where it is.
//
// Shape:  one node a key, with a tower of 1 to 24 pointers. A tower has one more level with
//         probability 1/2: against the 1/4 that Pugh's section on choosing p prefers, two thirds of
//         a pointer more a key, and a sixth fewer nodes that a search reads. It is drawn from the
//         key's hash, so the list is the same however many threads built it.
// Time:   find and insert O(log n) expected: about 1.5 nodes for each of log2 n levels, each a read
//         that waits for the one before. No other index here reads as many lines.
// Memory: 16 bytes and 2 pointers a key on average: 32 bytes, and malloc's own for each key.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <new>
#include <optional>
#include <utility>

#include "hash.hpp"

namespace atl::workloads {

class SkipList {
  static constexpr int kLevels = 24;  // for 2^24 keys

  // Followed by its tower.
  struct Node {
    std::int64_t key;
    std::int64_t value;
  };
  using Link = std::atomic<Node*>;
  static_assert(alignof(Link) == alignof(Node));

 public:
  struct Lookup {
    std::int64_t key;
    int level;
    const Link* tower;  // of the last node that is before the key
    const Node* ahead;  // the next one on this level
    std::optional<std::int64_t> found;
  };

  SkipList() = default;
  SkipList(const SkipList&) = delete;
  SkipList& operator=(const SkipList&) = delete;
  ~SkipList() {
    // Relaxed: nobody else is here any more.
    Node* node = head_[0].load(std::memory_order_relaxed);
    while (node != nullptr) {
      ::operator delete(std::exchange(node, tower(node)[0].load(std::memory_order_relaxed)));
    }
  }

  bool insert(std::int64_t key, std::int64_t value) {
    Path path;
    if (locate(key, path)) return false;
    const int height = height_of(key);
    Node* const node = make(key, value, height);
    Link* const own = tower(node);
    for (int level = 0; level < height;) {
      auto at = static_cast<std::size_t>(level);
      // Relaxed: the exchange below publishes it.
      own[at].store(path.after[at], std::memory_order_relaxed);
      // Release: the node. Relaxed on failure: locate loads again.
      if (path.before[at][at].compare_exchange_strong(
              path.after[at], node, std::memory_order_release, std::memory_order_relaxed)) {
        ++level;
        continue;
      }
      // A node came between. On the lowest level it may have this key.
      if (locate(key, path) && level == 0) {
        ::operator delete(node);
        return false;
      }
    }
    return true;
  }

  [[nodiscard]] Lookup begin(std::int64_t key) const {
    return {key, kLevels - 1, head_.data(), after(head_.data(), kLevels - 1), std::nullopt};
  }

  [[gnu::always_inline]] bool step(Lookup& lookup) const {
    const Node* const node = lookup.ahead;
    if (node != nullptr && node->key <= lookup.key) {
      if (node->key == lookup.key) {
        lookup.found = node->value;
        return true;
      }
      lookup.tower = tower(node);
      lookup.ahead = after(lookup.tower, lookup.level);
    } else {
      // Down to where another node is ahead.
      while (lookup.ahead == node) {
        if (lookup.level == 0) return true;
        lookup.ahead = after(lookup.tower, --lookup.level);
      }
    }
    return false;
  }

  void prefetch(const Lookup& lookup) const { __builtin_prefetch(lookup.ahead); }

  void settle() {}

 private:
  // On each level the tower of the last node before a key, and the node after it.
  struct Path {
    std::array<Link*, kLevels> before;
    std::array<Node*, kLevels> after;
  };

  static int height_of(std::int64_t key) {
    const int zeros = std::countr_zero(mixed(static_cast<std::uint64_t>(key) + kGolden));
    return std::min(1 + zeros, kLevels);
  }

  static Node* make(std::int64_t key, std::int64_t value, int height) {
    const auto links = static_cast<std::size_t>(height);
    auto* const node = new (::operator new(sizeof(Node) + links * sizeof(Link))) Node{key, value};
    for (std::size_t at = 0; at < links; ++at) new (tower(node) + at) Link(nullptr);
    return node;
  }

  static Link* tower(Node* node) { return reinterpret_cast<Link*>(node + 1); }
  static const Link* tower(const Node* node) { return reinterpret_cast<const Link*>(node + 1); }

  // Acquire: what the node holds, written before it was linked.
  static Node* after(const Link* tower, int level) {
    return tower[level].load(std::memory_order_acquire);
  }

  // Whether the key is there.
  bool locate(std::int64_t key, Path& path) {
    Link* before = head_.data();
    for (int level = kLevels - 1; level >= 0; --level) {
      Node* ahead = after(before, level);
      while (ahead != nullptr && ahead->key < key) {
        before = tower(ahead);
        ahead = after(before, level);
      }
      path.before[static_cast<std::size_t>(level)] = before;
      path.after[static_cast<std::size_t>(level)] = ahead;
    }
    return path.after[0] != nullptr && path.after[0]->key == key;
  }

  std::array<Link, kLevels> head_{};
};

}  // namespace atl::workloads
