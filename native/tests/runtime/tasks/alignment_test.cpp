// Tasks, children and results of every alignment.
#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "atoll/runtime/coro.hpp"
#include "atoll/runtime/event.hpp"
#include "atoll/runtime/runtime.hpp"
#include "atoll/runtime/scope.hpp"
#include "atoll/runtime/task.hpp"
#include "runtime/parts.hpp"

namespace {

template <std::size_t kAlign>
struct alignas(kAlign) Aligned {
  int value = 7;
  bool right() const { return reinterpret_cast<std::uintptr_t>(this) % kAlign == 0 && value == 7; }
};

template <class Type>
class Alignment : public testing::Test {
 protected:
  atl::Runtime runtime{atl::test::with_workers(2)};
};

using Alignments =
    testing::Types<Aligned<16>, Aligned<32>, Aligned<64>, Aligned<128>, Aligned<4096>>;
TYPED_TEST_SUITE(Alignment, Alignments);

// Many at once, since malloc may give the first ones by luck what they need.
constexpr int kMany = 200;

TYPED_TEST(Alignment, OfWhatATaskCapturesAndReturns) {
  const TypeParam value;
  const auto task = [value] { return value.right() ? value : TypeParam{0}; };
  std::vector<atl::Task<TypeParam>> tasks;
  for (int i = 0; i < kMany; ++i) tasks.push_back(this->runtime.spawn(task));
  for (auto& one : tasks) EXPECT_TRUE(one.join().right());
}

TYPED_TEST(Alignment, OfWhatAChildCaptures) {
  const TypeParam value;
  const int right = this->runtime.run([&] {
    std::atomic<int> count{0};
    atl::Scope scope;
    for (int i = 0; i < kMany; ++i) scope.fork([value, &count] { count += value.right(); });
    scope.join();
    return count.load();
  });
  EXPECT_EQ(right, kMany);
}

TYPED_TEST(Alignment, OfWhatATaskOfATaskCaptures) {
  const TypeParam value;
  const int right = this->runtime.run([&] {
    int count = 0;
    for (int i = 0; i < kMany; ++i) count += atl::spawn([value] { return value.right(); }).join();
    return count;
  });
  EXPECT_EQ(right, kMany);
}

// A line, which is the most that they may ask for.
atl::Coro<Aligned<64>> after(atl::Event& event) {
  const Aligned<64> local;
  co_await event;
  co_return local.right() ? local : Aligned<64>{0};
}

TEST(AlignmentOfCoros, OfWhatTheyKeepAndReturn) {
  atl::Runtime runtime(atl::test::with_workers(2));
  atl::Event event;
  std::vector<atl::Task<Aligned<64>>> tasks;
  for (int i = 0; i < kMany; ++i) tasks.push_back(runtime.spawn(after(event)));
  event.set();
  for (auto& one : tasks) EXPECT_TRUE(one.join().right());
}

}  // namespace
