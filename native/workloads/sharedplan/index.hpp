// What the operators are made of: lists and indexes in an operator's own memory.
#pragma once

#include <algorithm>
#include <bit>
#include <memory_resource>
#include <vector>

#include "tables.hpp"

namespace atl::sharedplan {

using Memory = std::pmr::memory_resource*;
template <class Item>
using List = std::pmr::vector<Item>;

inline constexpr std::uint32_t kNothing = UINT32_MAX;

inline std::uint32_t hash_of(std::uint32_t key) { return key * 0x9e3779b1U; }

template <class Item>
std::uint64_t bytes_of(const List<Item>& list) {
  return list.capacity() * sizeof(Item);
}

// Where an output column comes from: the first input's column, a join's other one's, or a table's.
struct Source {
  std::size_t at = 0;
  const std::uint32_t* table = nullptr;
  bool other = false;
  [[nodiscard]] std::uint32_t of(const std::uint32_t* row, std::size_t table_row,
                                 const std::uint32_t* other_row = nullptr) const {
    return table != nullptr ? table[table_row] : (other ? other_row : row)[at];
  }
};

// Rows by key, chained.
class Index {
 public:
  explicit Index(Memory memory) : heads_(memory), next_(memory), keys_(memory) {}

  void clear(std::size_t rows) {
    shift_ = 32 - std::max(4, static_cast<int>(std::bit_width(rows)));
    heads_.assign(std::size_t{1} << (32 - shift_), kNothing);
    next_.clear();
    keys_.clear();
  }
  // Returns the entry's number: 0, 1, ...
  std::uint32_t add(std::uint32_t key) {
    std::uint32_t& head = heads_[hash_of(key) >> shift_];
    next_.push_back(head);
    keys_.push_back(key);
    return head = static_cast<std::uint32_t>(next_.size() - 1);
  }
  template <class Call>
  void each(std::uint32_t key, Call&& call) const {
    (void)find(key, [&](std::uint32_t at) {
      call(at);
      return false;
    });
  }
  // The first for which `is` is true, or kNothing.
  template <class Is>
  [[nodiscard]] std::uint32_t find(std::uint32_t key, Is&& is) const {
    for (std::uint32_t at = heads_[hash_of(key) >> shift_]; at != kNothing; at = next_[at]) {
      if (keys_[at] == key && is(at)) return at;
    }
    return kNothing;
  }
  [[nodiscard]] bool empty() const { return next_.empty(); }
  [[nodiscard]] std::uint64_t bytes() const {
    return bytes_of(heads_) + bytes_of(next_) + bytes_of(keys_);
  }

 private:
  List<std::uint32_t> heads_, next_, keys_;
  int shift_ = 28;
};

}  // namespace atl::sharedplan
