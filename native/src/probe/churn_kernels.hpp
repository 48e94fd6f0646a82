// What one thread of `churn` does to malloc.
//
// The allocator microbenchmark of numa-query-tuning III-A8: each thread either allocates memory
// and writes it, or reads an item that is there and frees it; sizes fall into classes that are the
// rarer the larger they are (inversely proportional). The paper tells no more, so ours: classes
// are the powers of two from 16 bytes to 64 KiB, a size is uniform within its class, items live
// in a table of slots and a random slot is filled or emptied. One operation in eight crosses
// threads: the item goes to the next thread, which frees it, as a query's exchange does.
//
// Every word of an item carries a stamp made of its address and size and is compared when it is
// freed: an allocator that gives memory out twice is found out. The table itself is not malloc's.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

namespace atl::probe {

using ChurnBox = std::atomic<void*>;

inline constexpr unsigned kLeastClassBits = 4;
inline constexpr unsigned kMostClassBits = 16;
inline constexpr std::size_t kChurnLeastBytes = std::size_t{1} << kLeastClassBits;
inline constexpr std::size_t kChurnMostBytes = std::size_t{1} << kMostClassBits;

// Of 64 random bits: the trailing zeros are the class, so that each has half the probability of
// the one below it; the upper half is the place within it.
[[nodiscard]] constexpr std::size_t churn_size(std::uint64_t random) {
  constexpr unsigned kClasses = kMostClassBits - kLeastClassBits;
  const unsigned zeros = static_cast<unsigned>(std::countr_zero(random | (1ULL << kClasses)));
  const std::size_t top = std::size_t{1} << (kLeastClassBits + zeros);
  return zeros == 0 ? top : top - ((random >> 32) & (top / 2 - 1));
}

// Writes the stamp over all of an item of at least kChurnLeastBytes.
void churn_write(void* item, std::size_t bytes);
// The item's size if every byte is as churn_write left it, else 0.
[[nodiscard]] std::size_t churn_check(const void* item);

// `slots` and both boxes are powers of two long and begin empty (null). Several threads work on a
// box at once, only the owner on its slots.
class ChurnThread {
 public:
  ChurnThread(std::span<void*> slots, std::span<ChurnBox> inbox, std::span<ChurnBox> outbox,
              std::uint64_t seed);

  // Throws std::bad_alloc where malloc gives nothing.
  void run(std::size_t operations);
  // The same without malloc, free and the items' bytes.
  void run_null(std::size_t operations);
  // Frees what is left in the slots and the inbox; when no thread runs any more.
  void drain();
  void drain_null();

  // Bytes that this thread asked for less those that it freed; the sum over all threads is what
  // lives.
  [[nodiscard]] std::int64_t live_bytes() const { return live_bytes_; }
  [[nodiscard]] bool right() const { return right_; }

 private:
  template <typename Items>
  void work(std::size_t operations);
  template <typename Items>
  void empty();
  template <typename Items>
  void* make(std::size_t bytes);
  template <typename Items>
  void release(void* item);

  std::span<void*> slots_;
  std::span<ChurnBox> inbox_;
  std::span<ChurnBox> outbox_;
  std::uint64_t random_;
  std::int64_t live_bytes_ = 0;
  bool right_ = true;
};

}  // namespace atl::probe
