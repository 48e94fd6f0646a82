// A tree whose inner nodes are those of a B+tree and whose leaves are a parameter: what the B+tree
// and a layer of Masstree have in common.
//
// Descents couple optimistic locks (optimistic_lock.hpp). An insertion splits each full node on
// its way and begins again, so that a parent always has room for one more child and no descent
// holds more than two locks. Nodes are never removed: a pointer that was once read stays valid, and
// only what it leads to needs the check.
//
// Leaf:  insert(key, value)   false if it is there; not full
//        find(key)            what a reader sees, right or wrong; the lock tells which
//        split()              moves its upper half to a new leaf; that, and its least key
//        is_full()
//        kKeepsReaders        what readers saw stays right through an insertion
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "indexes/optimistic_lock.hpp"

namespace atl::workloads {

using KeyField = Field<std::int64_t>;

struct TreeNode {
  explicit TreeNode(bool leaf) : is_leaf(leaf) {}
  OptimisticLock lock;
  const bool is_leaf;
};

// What a place for a key holds when it is free, so that a search need not know which ones are.
inline constexpr std::int64_t kFree = std::numeric_limits<std::int64_t>::max();

template <std::size_t kKeys>
struct KeyFields {
  KeyFields() { free_from(0, kKeys); }
  void free_from(std::size_t first, std::size_t last) {
    for (; first < last; ++first) fields[first].store(kFree);
  }

  // How many of the first `count` keys, the only ones that are not free, are at most `key`. Each
  // round compares with three keys at once and goes on in the fourth of the places that they leave.
  // No branch depends on a key.
  [[nodiscard]] std::size_t rank_of(std::int64_t key, std::size_t count) const {
    return std::min(rank_among<kKeys + 1>(0, key), count);
  }

  // The rank is one of the kRanks from `first` on.
  template <std::size_t kRanks>
  [[gnu::always_inline]] std::size_t rank_among(std::size_t first, std::int64_t key) const {
    if constexpr (kRanks == 1) {
      return first;
    } else {
      constexpr std::size_t kBlock = (kRanks + 3) / 4;
      static_assert(kRanks % kBlock == 0);
      std::size_t blocks = 0;
#pragma GCC unroll 3
      for (std::size_t at = kBlock; at < kRanks; at += kBlock) {
        blocks += fields[first + at - 1].load() <= key ? 1 : 0;
      }
      return rank_among<kBlock>(first + blocks * kBlock, key);
    }
  }

  KeyField fields[kKeys];
};

// Puts a value at `at` of the first `count`, and the later ones one place on.
template <class T>
void insert_at(Field<T>* fields, std::size_t count, std::size_t at, T value) {
  for (std::size_t to = count; to > at; --to) fields[to].store(fields[to - 1].load());
  fields[at].store(value);
}

template <std::size_t kKeys>
class InnerNode : public TreeNode {
 public:
  explicit InnerNode(TreeNode* child) : TreeNode(false) { children_[0].store(child); }

  [[nodiscard]] bool is_full() const { return count_.load() == kKeys; }
  [[nodiscard]] TreeNode* child_of(std::int64_t key) const {
    return children_[keys_.rank_of(key, count_.load())].load();
  }

  void add(std::int64_t separator, TreeNode* right) {
    const std::uint32_t count = count_.load();
    const std::size_t at = keys_.rank_of(separator, count);
    insert_at(keys_.fields, count, at, separator);
    insert_at(children_, count + 1, at + 1, right);
    count_.store(count + 1);
  }

  std::pair<std::int64_t, InnerNode*> split() {
    const std::uint32_t count = count_.load();
    const std::uint32_t half = count / 2;
    auto* const right = new InnerNode(children_[half + 1].load());
    for (std::uint32_t from = half + 1; from < count; ++from) {
      right->keys_.fields[from - half - 1].store(keys_.fields[from].load());
      right->children_[from - half].store(children_[from + 1].load());
    }
    right->count_.store(count - half - 1);
    const std::int64_t separator = keys_.fields[half].load();
    keys_.free_from(half, count);
    count_.store(half);
    return {separator, right};
  }

  // Between changes.
  template <class Each>
  void children(Each&& each) const {
    for (std::uint32_t at = 0; at <= count_.load(); ++at) each(children_[at].load());
  }

 private:
  Field<std::uint32_t> count_;  // of the keys; one child more
  KeyFields<kKeys> keys_;       // key i: the least of child i + 1
  Field<TreeNode*> children_[kKeys + 1];
};

template <class Leaf, std::size_t kInnerKeys>
class CoupledTree {
  using Inner = InnerNode<kInnerKeys>;

 public:
  struct Lookup {
    std::int64_t key;
    const TreeNode* node;
    const OptimisticLock* above;  // the lock of the pointer to the node, and its version
    std::uint64_t above_version;
    std::optional<std::int64_t> found;
  };

  CoupledTree() : root_(new Leaf()) {}
  CoupledTree(const CoupledTree&) = delete;
  CoupledTree& operator=(const CoupledTree&) = delete;
  ~CoupledTree() { destroy(root_.load()); }

  bool insert(std::int64_t key, std::int64_t value) {
    for (;;) {
      if (const std::optional<bool> done = try_insert(key, value)) return *done;
    }
  }

  [[nodiscard]] Lookup begin(std::int64_t key) const {
    const std::uint64_t version = lock_.read();
    return {key, root_.load(), &lock_, version, std::nullopt};
  }

  [[gnu::always_inline]] bool step(Lookup& lookup) const {
    const TreeNode* const node = lookup.node;
    const std::uint64_t version = node->lock.read();
    if (!lookup.above->still(lookup.above_version)) return again(lookup);
    if (node->is_leaf) {
      lookup.found = leaf(node)->find(lookup.key);
      return node->lock.still(version) || again(lookup);
    }
    lookup.node = inner(node)->child_of(lookup.key);
    if (!node->lock.still(version)) return again(lookup);
    lookup.above = &node->lock;
    lookup.above_version = version;
    return false;
  }

  // Whether the node is a leaf is not known before it is there.
  void prefetch(const Lookup& lookup) const {
    const auto* const begin = reinterpret_cast<const char*>(lookup.node);
    for (std::size_t at = 0; at < std::min(sizeof(Inner), sizeof(Leaf)); at += 64) {
      __builtin_prefetch(begin + at);
    }
  }

  void settle() {}

 private:
  static Leaf* leaf(TreeNode* node) { return static_cast<Leaf*>(node); }
  static const Leaf* leaf(const TreeNode* node) { return static_cast<const Leaf*>(node); }
  static Inner* inner(TreeNode* node) { return static_cast<Inner*>(node); }
  static const Inner* inner(const TreeNode* node) { return static_cast<const Inner*>(node); }

  bool again(Lookup& lookup) const {
    lookup = begin(lookup.key);
    return false;
  }

  // nullopt: something has changed on the way, or a node was split.
  std::optional<bool> try_insert(std::int64_t key, std::int64_t value) {
    OptimisticLock* above = &lock_;
    std::uint64_t above_version = lock_.read();
    Inner* parent = nullptr;
    TreeNode* node = root_.load();
    for (;;) {
      const std::uint64_t version = node->lock.read();
      if (!above->still(above_version)) return std::nullopt;
      if (node->is_leaf ? leaf(node)->is_full() : inner(node)->is_full()) {
        const Exclusive upper(*above, above_version);
        const Exclusive own(node->lock, version);
        if (upper && own) split(parent, node);
        return std::nullopt;
      }
      if (node->is_leaf) {
        Exclusive own(node->lock, version);
        // Where insertions keep the version, the leaf can have become full.
        if (!own || leaf(node)->is_full()) return std::nullopt;
        if (Leaf::kKeepsReaders) own.unchanged();
        return leaf(node)->insert(key, value);
      }
      TreeNode* const child = inner(node)->child_of(key);
      if (!node->lock.still(version)) return std::nullopt;
      parent = inner(node);
      above = &node->lock;
      above_version = version;
      node = child;
    }
  }

  // Both are locked. What can throw comes before what changes.
  void split(Inner* parent, TreeNode* node) {
    std::unique_ptr<Inner> root(parent == nullptr ? new Inner(node) : nullptr);
    Inner* const upper = parent == nullptr ? root.get() : parent;
    if (node->is_leaf) {
      const auto [separator, right] = leaf(node)->split();
      upper->add(separator, right);
    } else {
      const auto [separator, right] = inner(node)->split();
      upper->add(separator, right);
    }
    if (root) root_.store(root.release());
  }

  static void destroy(TreeNode* node) {
    if (node->is_leaf) {
      delete leaf(node);
      return;
    }
    inner(node)->children(destroy);
    delete inner(node);
  }

  mutable OptimisticLock lock_;  // of root_
  Field<TreeNode*> root_;
};

}  // namespace atl::workloads
