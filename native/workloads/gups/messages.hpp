// RandomAccess by messages, as RING has it: each rank owns a part of the table, and updates travel
// to the owner in batches.
//
// A worker keeps at most 1,024 updates: half of them that it collects for others, half that wait in
// the boxes of others. A box has one sender, one owner and room for one batch, so neither takes a
// lock. Nobody waits, since a scheduler may run the ranks one after the other: a sender that finds
// the owner's box full does the batch itself, racing with the owner as the rules allow.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "gups/sequence.hpp"
#include "gups/table.hpp"

namespace atl::kernels {

class Messages {
 public:
  Messages(Table table, std::uint64_t entries, int ranks)
      : table_(table),
        entries_(entries),
        ranks_(static_cast<std::size_t>(ranks)),
        batch_(std::max<std::size_t>(kLookAhead / 2 / ranks_, 1)),
        boxes_(ranks_ * ranks_),
        values_(boxes_.size() * 2 * batch_) {}

  // Sends the updates of the range to their owners, as rank `from`.
  void send(std::size_t from, Range range) {
    std::uint64_t value = start(range.first);
    for (std::uint64_t at = range.first; at < range.last; ++at) {
      if ((at - range.first) % (kLookAhead / 2) == 0) receive(from);
      value = after(value);
      const std::size_t to = owner(value);
      Box& box = this->box(from, to);
      values(from, to)[batch_ + box.kept++] = value;
      if (box.kept == batch_) deliver(from, to);
    }
    for (std::size_t to = 0; to < ranks_; ++to) deliver(from, to);
  }

  // Does what was sent to rank `to`.
  void receive(std::size_t to) {
    for (std::size_t from = 0; from < ranks_; ++from) {
      Box& box = this->box(from, to);
      // Acquire: the values that the sender wrote before its release.
      const std::size_t waiting = box.waiting.load(std::memory_order_acquire);
      if (waiting == 0) continue;
      apply({values(from, to), waiting});
      // Release: they are read before the sender, who acquires it, overwrites them.
      box.waiting.store(0, std::memory_order_release);
    }
  }

  [[nodiscard]] std::uint64_t done_by_senders() const { return late_; }

 private:
  // From one rank to another. Its values: the first `batch_` are sent, the others not yet.
  struct alignas(64) Box {
    std::atomic<std::size_t> waiting{0};  // of those sent
    std::size_t kept = 0;                 // of the others; the sender's
  };

  Box& box(std::size_t from, std::size_t to) { return boxes_[from * ranks_ + to]; }
  std::uint64_t* values(std::size_t from, std::size_t to) {
    return values_.data() + (from * ranks_ + to) * 2 * batch_;
  }
  std::size_t owner(std::uint64_t value) const {
    return static_cast<std::size_t>((value & table_.mask) * ranks_ / entries_);
  }

  void deliver(std::size_t from, std::size_t to) {
    Box& box = this->box(from, to);
    const std::span<std::uint64_t> kept(values(from, to) + batch_, box.kept);
    box.kept = 0;
    if (from == to) return apply(kept);
    // Acquire: the owner has read what was there, as `receive` says.
    if (box.waiting.load(std::memory_order_acquire) != 0) {
      late_.fetch_add(kept.size(), std::memory_order_relaxed);
      return apply(kept);
    }
    std::copy(kept.begin(), kept.end(), values(from, to));
    box.waiting.store(kept.size(), std::memory_order_release);
  }

  void apply(std::span<const std::uint64_t> values) const {
    for (const std::uint64_t value : values) table_.prefetch(value);
    for (const std::uint64_t value : values) table_.update(value);
  }

  const Table table_;
  const std::uint64_t entries_;
  const std::size_t ranks_;
  const std::size_t batch_;
  std::vector<Box> boxes_;
  std::vector<std::uint64_t> values_;
  std::atomic<std::uint64_t> late_{0};
};

}  // namespace atl::kernels
