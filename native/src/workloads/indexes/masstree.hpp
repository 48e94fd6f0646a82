// Masstree: a trie of B+trees, of which a 64-bit key needs one.
//
// Source: Mao, Kohler and Morris, "Cache Craftiness for Fast Multicore Key-Value Storage", EuroSys
// 2012. Masstree cuts a key into slices of 8 bytes. Each layer of its trie is a B+tree over one
// slice, and keys with a common slice share the layer below. A 64-bit integer is one slice: every
// key ends in the first layer, and no second one is ever made. So what is here is that layer: the
// trie, key suffixes, and removal are left out, as nothing here could reach them.
//
// What remains of Masstree is the shape of its nodes and how a key is added (sections 4.2 to 4.6):
// nodes of 15 keys in about four cache lines, all asked for at once; and leaves whose keys stay
// where they were put. Their order is a permutation in one word. An insertion writes key and value
// to a free place, then the new permutation. Readers have the old order or the new one, both right,
// and need not look again; only splits make them. Unlike Masstree, full nodes are split on the way
// down (coupled_tree.hpp), which spares leaves their links and nodes their parents.
//
// Time:   find and insert O(log n); an insertion moves no key.
// Memory: nodes of 264 bytes that are 69 % full on average for keys in random order: 16 bytes and
//         1.6 of header a key, over 0.69, and a tenth for inner nodes: 28 bytes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "indexes/coupled_tree.hpp"

namespace atl::workloads {

// The order of up to 15 places: how many are in use in the lowest four bits, then four bits for
// each place: those in use by their keys, then the free ones.
class Permutation {
 public:
  explicit Permutation(std::uint64_t word = 0xedcba98765432100) : word_(word) {}

  [[nodiscard]] std::uint64_t word() const { return word_; }
  [[nodiscard]] std::size_t size() const { return word_ & 15; }
  [[nodiscard]] std::size_t operator[](std::size_t rank) const {
    return word_ >> (4 * rank + 4) & 15;
  }

  // Takes the first free place, at this rank.
  [[nodiscard]] Permutation with(std::size_t rank) const {
    const std::size_t end = 4 * size() + 4;
    const std::size_t at = 4 * rank + 4;
    const std::uint64_t moved = bits(end) & ~bits(at);
    const std::uint64_t rest = word_ & ~moved & ~(std::uint64_t{15} << end);
    return Permutation((rest | (word_ & moved) << 4 | std::uint64_t{(*this)[size()]} << at) + 1);
  }

  // The first `size` places; the others are free.
  [[nodiscard]] Permutation first(std::size_t size) const {
    return Permutation((word_ & ~std::uint64_t{15}) | size);
  }

 private:
  // The lowest `count` bits; count is below 64.
  static std::uint64_t bits(std::size_t count) { return (std::uint64_t{1} << count) - 1; }
  std::uint64_t word_;
};

class PermutedLeaf : public TreeNode {
 public:
  static constexpr bool kKeepsReaders = true;

  PermutedLeaf() : TreeNode(true), order_(Permutation().word()) {}

  [[nodiscard]] bool is_full() const { return Permutation(order_.load()).size() == kKeys; }

  [[nodiscard]] std::optional<std::int64_t> find(std::int64_t key) const {
    // Places in use are the first ones, and equality needs no order. Behind them can be what a
    // split has moved.
    const std::size_t size = Permutation(order_.load()).size();
    // The lines of the values come while the keys are searched, each third by itself: then five
    // comparisons wait for each other, not fifteen.
    __builtin_prefetch(&values_[0]);
    __builtin_prefetch(&values_[kKeys - 1]);
    constexpr std::size_t kThird = kKeys / 3;
    std::size_t first = kKeys;
    std::size_t second = kKeys;
    std::size_t third = kKeys;
#pragma GCC unroll 5
    for (std::size_t at = kThird; at-- > 0;) {
      first = keys_[at].load() == key ? at : first;
      second = keys_[kThird + at].load() == key ? kThird + at : second;
      third = keys_[2 * kThird + at].load() == key ? 2 * kThird + at : third;
    }
    const std::size_t place = std::min({first, second, third});
    if (place >= size) return std::nullopt;
    return values_[place].load();
  }

  bool insert(std::int64_t key, std::int64_t value) {
    const Permutation order(order_.load());
    const std::size_t rank = rank_in(order, key);
    if (rank > 0 && keys_[order[rank - 1]].load() == key) return false;
    const std::size_t free = order[order.size()];
    keys_[free].store(key);
    values_[free].store(value);
    order_.store(order.with(rank).word());
    return true;
  }

  std::pair<std::int64_t, PermutedLeaf*> split() {
    auto* const right = new PermutedLeaf();
    const Permutation order(order_.load());
    const std::size_t half = order.size() / 2;
    std::pair<std::int64_t, std::int64_t> entries[kKeys];
    for (std::size_t rank = 0; rank < order.size(); ++rank) {
      entries[rank] = {keys_[order[rank]].load(), values_[order[rank]].load()};
    }
    for (std::size_t rank = 0; rank < order.size(); ++rank) {
      PermutedLeaf& leaf = rank < half ? *this : *right;
      const std::size_t place = rank < half ? rank : rank - half;
      leaf.keys_[place].store(entries[rank].first);
      leaf.values_[place].store(entries[rank].second);
    }
    order_.store(Permutation().first(half).word());
    right->order_.store(Permutation().first(order.size() - half).word());
    return {right->keys_[0].load(), right};
  }

 private:
  static constexpr std::size_t kKeys = 15;

  // How many keys are at most `key`. No branch depends on a key.
  [[nodiscard]] std::size_t rank_in(Permutation order, std::int64_t key) const {
    std::size_t first = 0;
    std::size_t count = order.size();
    for (; count > 1; count -= count / 2) {
      first += keys_[order[first + count / 2 - 1]].load() <= key ? count / 2 : 0;
    }
    return first + (count == 1 && keys_[order[first]].load() <= key ? 1 : 0);
  }

  Field<std::uint64_t> order_;
  KeyField keys_[kKeys];
  KeyField values_[kKeys];
};
static_assert(sizeof(PermutedLeaf) == 264);

using Masstree = CoupledTree<PermutedLeaf, 15>;

}  // namespace atl::workloads
