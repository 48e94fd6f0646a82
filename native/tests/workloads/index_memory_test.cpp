// Each allocation of each insertion fails once: the insertion throws, the index answers as before,
// and nothing leaks.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <new>
#include <optional>

#include "hash.hpp"
#include "indexes/art.hpp"
#include "indexes/btree.hpp"
#include "indexes/index.hpp"
#include "indexes/masstree.hpp"
#include "indexes/skip_list.hpp"

// ThreadSanitizer has an operator new of its own, and would find nothing here: one thread.
#if !defined(__SANITIZE_THREAD__)

namespace {

thread_local constinit long allocations_until_refusal = -1;  // -1: none is refused
thread_local constinit long blocks_held = 0;

void* block(std::size_t bytes) {
  if (allocations_until_refusal >= 0 && allocations_until_refusal-- == 0) return nullptr;
  void* const memory = std::malloc(bytes);
  if (memory != nullptr) ++blocks_held;
  return memory;
}

void free_block(void* memory) {
  if (memory != nullptr) --blocks_held;
  std::free(memory);
}

}  // namespace

// Not inlined, or gcc takes them for a mismatched pair. AddressSanitizer has an own `new
// (nothrow)`, which std::stable_sort uses with our `delete`.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  void* const memory = block(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
[[gnu::noinline]] void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return block(bytes);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { free_block(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { free_block(memory); }

namespace atl::workloads {
namespace {

// Dense keys and keys far apart in turn.
std::int64_t dense_or_far(std::int64_t number) {
  if (number % 2 == 0) return number;
  return static_cast<std::int64_t>(mixed(static_cast<std::uint64_t>(number)));
}

template <Index I>
class IndexMemory : public testing::Test {};
using Allocating = testing::Types<Art, Masstree, BTree, SkipList>;
TYPED_TEST_SUITE(IndexMemory, Allocating);

TYPED_TEST(IndexMemory, AnInsertionThatFailsChangesNothing) {
  constexpr std::int64_t kCount = 20'000;
  const long held_before = blocks_held;
  {
    TypeParam index;
    long refused = 0;
    for (std::int64_t number = 0; number < kCount; ++number) {
      const std::int64_t key = dense_or_far(number);
      bool inserted = false;
      for (long allowed = 0; !inserted; ++allowed) {
        allocations_until_refusal = allowed;
        try {
          inserted = index.insert(key, number);
          allocations_until_refusal = -1;
          ASSERT_TRUE(inserted) << key;
        } catch (const std::bad_alloc&) {
          ++refused;
          ASSERT_EQ(find(index, key), std::nullopt) << key;
          if (number > 0) {
            ASSERT_EQ(find(index, dense_or_far(number / 2)), number / 2);
          }
        }
      }
    }
    EXPECT_GT(refused, kCount / 50);
    index.settle();
    for (std::int64_t number = 0; number < kCount; ++number) {
      ASSERT_EQ(find(index, dense_or_far(number)), number);
    }
  }
  EXPECT_EQ(blocks_held, held_before);
}

}  // namespace
}  // namespace atl::workloads

#endif
