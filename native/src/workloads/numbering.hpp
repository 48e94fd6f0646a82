// Numbers the distinct keys of a partition: 0, 1, 2, ... in the order in which they come.
//
// Open addressing with linear probing, at most half full, in memory that is kept from one partition
// to the next. For one thread.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "hash.hpp"

namespace atl::workloads {

class Numbering {
 public:
  explicit Numbering(std::size_t expected)
      : bits_(expected < 8 ? 4 : static_cast<int>(std::bit_width(expected - 1)) + 1),
        slots_(std::size_t{1} << bits_) {}

  [[nodiscard]] const std::vector<std::int64_t>& keys() const { return keys_; }

  // The key's number. If that is keys().size() - 1, it may be new.
  std::uint32_t of(std::int64_t key) {
    for (std::size_t at = place(key);; at = (at + 1) & (slots_.size() - 1)) {
      Slot& slot = slots_[at];
      if (slot.number == 0) return add(slot, key);
      if (slot.key == key) return slot.number - 1;
    }
  }

  // Forgets all keys. Costs as much as the keys, not as the slots.
  void clear() {
    for (const std::int64_t key : keys_) {
      for (std::size_t at = place(key); slots_[at].number != 0;
           at = (at + 1) & (slots_.size() - 1)) {
        slots_[at].number = 0;
      }
    }
    keys_.clear();
  }

 private:
  struct Slot {
    std::int64_t key;
    std::uint32_t number = 0;  // plus 1; 0: free
  };

  // Mixed, since the keys of a partition have the upper bits of their hashes in common.
  [[nodiscard]] std::size_t place(std::int64_t key) const {
    return upper(hash_of(static_cast<std::int64_t>(hash_of(key) >> 20)), bits_);
  }

  std::uint32_t add(Slot& slot, std::int64_t key) {
    keys_.push_back(key);
    const auto number = static_cast<std::uint32_t>(keys_.size());
    slot = {key, number};
    if (keys_.size() * 2 > slots_.size()) grow();
    return number - 1;
  }

  void grow() {
    slots_.assign(std::size_t{1} << ++bits_, Slot{});
    for (std::uint32_t number = 0; number < keys_.size(); ++number) {
      std::size_t at = place(keys_[number]);
      while (slots_[at].number != 0) at = (at + 1) & (slots_.size() - 1);
      slots_[at] = {keys_[number], number + 1};
    }
  }

  int bits_;
  std::vector<Slot> slots_;
  std::vector<std::int64_t> keys_;
};

}  // namespace atl::workloads
