// The work of one `churn` thread on malloc.
//
// The allocator microbenchmark of numa-query-tuning III-A8: each thread either allocates memory
// and writes it, or reads an existing item and frees it. Sizes fall into classes whose frequency
// is inversely proportional to their size. The paper gives no more details, so here the classes
// are the powers of two from 16 bytes to 64 KiB, a size is uniform within its class, items live
// in a table of slots, and each step fills or empties a random slot. One operation in eight
// crosses threads: the item goes to the next thread, which frees it, as in a query's exchange.
//
// Every word of an item has a stamp made from its address and size, which is compared before the
// free. It detects an allocator that hands out memory twice. The table is not from malloc.
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

// Derives a size from 64 random bits: the trailing zeros give the class, so that each class has
// half the probability of the one below; the upper half gives the size within the class.
[[nodiscard]] constexpr std::size_t churn_size(std::uint64_t random) {
  constexpr unsigned kClasses = kMostClassBits - kLeastClassBits;
  const unsigned zeros = static_cast<unsigned>(std::countr_zero(random | (1ULL << kClasses)));
  const std::size_t top = std::size_t{1} << (kLeastClassBits + zeros);
  return zeros == 0 ? top : top - ((random >> 32) & (top / 2 - 1));
}

// Fills an item of at least kChurnLeastBytes with its stamp.
void churn_write(void* item, std::size_t bytes);
// Returns the item's size if every byte is as churn_write left it, else 0.
[[nodiscard]] std::size_t churn_check(const void* item);

// The lengths of `slots` and both boxes are powers of two, and all begin empty (null). Several
// threads use a box at once; only the owner uses its slots.
class ChurnThread {
 public:
  ChurnThread(std::span<void*> slots, std::span<ChurnBox> inbox, std::span<ChurnBox> outbox,
              std::uint64_t seed);

  // Throws std::bad_alloc if malloc fails.
  void run(std::size_t operations);
  // The same without malloc, free and access to the items.
  void run_null(std::size_t operations);
  // Frees what is left in the slots and the inbox. Call it when no thread runs any more.
  void drain();
  void drain_null();

  // The bytes that this thread requested minus those that it freed. The sum over all threads is
  // the number of live bytes.
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
