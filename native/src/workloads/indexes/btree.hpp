// The B+tree: sorted nodes of a few cache lines, all values in the leaves.
//
// Source: Bayer and McCreight, "Organization and Maintenance of Large Ordered Indices", Acta
// Informatica 1972, in the form with values in the leaves only (Comer, "The Ubiquitous B-Tree", ACM
// Computing Surveys 1979, section 3). In numa-query-tuning it is the STX B+tree, whose nodes are
// about 256 bytes and which one thread builds; here all threads do (coupled_tree.hpp).
//
// Shape:  inner nodes of up to 63 keys, 1,032 bytes, which stay in the caches, and leaves of up to
// 31
//         keys and values, 512 bytes. Keys lie together, so that a search of a node reads few
//         lines; it has no branch that a key decides.
// Time:   find and insert O(log n); an insertion moves half a leaf on average, a split happens once
//         in about 15 insertions.
// Memory: nodes that split in two are between half and wholly full, 69 % on average for keys in
//         random order (Yao, Acta Informatica 1978): 16 / 0.69 + 1 = 24 bytes a key.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "indexes/coupled_tree.hpp"

namespace atl::workloads {

class SortedLeaf : public TreeNode {
 public:
  static constexpr bool kKeepsReaders = false;

  SortedLeaf() : TreeNode(true) {}

  [[nodiscard]] bool is_full() const { return count_.load() == kKeys; }

  [[nodiscard]] std::optional<std::int64_t> find(std::int64_t key) const {
    // The lines of the values come while the keys are searched.
#pragma GCC unroll 4
    for (std::size_t at = 0; at < kKeys; at += 8) __builtin_prefetch(&values_[at]);
    const std::size_t rank = keys_.rank_of(key, count_.load());
    if (rank == 0 || keys_.fields[rank - 1].load() != key) return std::nullopt;
    return values_[rank - 1].load();
  }

  bool insert(std::int64_t key, std::int64_t value) {
    const std::uint32_t count = count_.load();
    const std::size_t rank = keys_.rank_of(key, count);
    if (rank > 0 && keys_.fields[rank - 1].load() == key) return false;
    insert_at(keys_.fields, count, rank, key);
    insert_at(values_, count, rank, value);
    count_.store(count + 1);
    return true;
  }

  std::pair<std::int64_t, SortedLeaf*> split() {
    auto* const right = new SortedLeaf();
    const std::uint32_t count = count_.load();
    const std::uint32_t half = count / 2;
    for (std::uint32_t from = half; from < count; ++from) {
      right->keys_.fields[from - half].store(keys_.fields[from].load());
      right->values_[from - half].store(values_[from].load());
    }
    right->count_.store(count - half);
    keys_.free_from(half, count);
    count_.store(half);
    return {right->keys_.fields[0].load(), right};
  }

 private:
  static constexpr std::size_t kKeys = 31;

  Field<std::uint32_t> count_;
  KeyFields<kKeys> keys_;
  KeyField values_[kKeys];
};
static_assert(sizeof(SortedLeaf) == 512);

using BTree = CoupledTree<SortedLeaf, 63>;

}  // namespace atl::workloads
