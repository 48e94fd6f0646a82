// One hash table that all threads update, with a state per key.
//
// After the shared global hash table of numa-query-tuning (section IV-B), which is libcuckoo
// there. What the paper varies is the memory that a group takes from malloc, not the collisions:
// this table chains its entries, one malloc each, and locks one bucket at a time by a bit of its
// head. It has at least one bucket per expected key and does not grow.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "hash.hpp"
#include "rows.hpp"
#include "spin.hpp"

namespace atl::workloads {

template <class State>
class SharedTable {
  struct Entry {
    std::int64_t key;
    Entry* next;
    State state;
  };

 public:
  // `keys`: how many are expected, at least 1. The table holds any number.
  explicit SharedTable(std::size_t keys)
      : bits_(keys < 2 ? 1 : static_cast<int>(std::bit_width(keys - 1))),
        heads_(std::size_t{1} << bits_) {}
  SharedTable(const SharedTable&) = delete;
  SharedTable& operator=(const SharedTable&) = delete;
  ~SharedTable() {
    drain(0, buckets(), [](std::int64_t, State&) {});
  }

  [[nodiscard]] std::size_t buckets() const { return heads_.size(); }

  // Calls change(state) of the key's entry, a new one at first, while nobody else changes it. Any
  // number of threads may call it. Throws std::bad_alloc.
  template <class Change>
  void update(std::int64_t key, Change&& change) {
    Locked bucket(heads_[upper(hash_of(key), bits_)]);
    Entry* entry = bucket.first;
    while (entry != nullptr && entry->key != key) entry = entry->next;
    if (entry == nullptr) bucket.first = entry = new Entry{key, bucket.first, State{}};
    change(entry->state);
  }

  // Calls take(key, state) for the entries of buckets [first, last) and deletes them, so that many
  // threads can read and free the table at once. Not beside update.
  template <class Take>
  void drain(std::size_t first, std::size_t last, Take&& take) {
    for (std::size_t at = first; at < last; ++at) {
      // Relaxed: the updates are over, and the end of their loop orders them before this.
      auto* entry = reinterpret_cast<Entry*>(heads_[at].load(std::memory_order_relaxed));
      heads_[at].store(0, std::memory_order_relaxed);
      while (entry != nullptr) {
        take(entry->key, entry->state);
        delete std::exchange(entry, entry->next);
      }
    }
  }

 private:
  using Head = std::atomic<std::uintptr_t>;  // the first entry; bit 0: locked
  static_assert(alignof(Entry) > 1);
  static_assert(sizeof(Head) == sizeof(std::uintptr_t));

  // A bucket that only this thread uses.
  class Locked {
   public:
    explicit Locked(Head& head) : head_(head) {
      for (Spin spin;;) {
        // Acquire: what the holder before wrote to the entries.
        const std::uintptr_t seen = head_.fetch_or(1, std::memory_order_acquire);
        if ((seen & 1) == 0) {
          first = reinterpret_cast<Entry*>(seen);
          return;
        }
        while ((head_.load(std::memory_order_relaxed) & 1) != 0) spin.wait();
      }
    }
    Locked(const Locked&) = delete;
    Locked& operator=(const Locked&) = delete;
    // Release: what this thread wrote to the entries.
    ~Locked() { head_.store(reinterpret_cast<std::uintptr_t>(first), std::memory_order_release); }

    Entry* first = nullptr;

   private:
    Head& head_;
  };

  int bits_;
  Mapped<Head> heads_;
};

}  // namespace atl::workloads
