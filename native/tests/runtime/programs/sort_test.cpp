// A parallel merge sort of forks, whose merges fork, too.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "atoll/runtime/fork.hpp"
#include "atoll/runtime/runtime.hpp"
#include "runtime/parts.hpp"

namespace {

using Numbers = std::span<std::uint64_t>;
constexpr std::size_t kSmall = 256;

void merge_forked(Numbers left, Numbers right, Numbers into) {
  if (left.size() < right.size()) std::swap(left, right);
  if (left.size() + right.size() <= kSmall) {
    std::ranges::merge(left, right, into.begin());
    return;
  }
  const std::size_t half = left.size() / 2;
  const auto cut =
      static_cast<std::size_t>(std::ranges::lower_bound(right, left[half]) - right.begin());
  auto low =
      atl::fork([=] { merge_forked(left.first(half), right.first(cut), into.first(half + cut)); });
  merge_forked(left.subspan(half), right.subspan(cut), into.subspan(half + cut));
  low.join();
}

// Sorts `from`; the result is in `into` if asked for, else in `from`.
void sort_forked(Numbers from, Numbers into, bool result_in_into) {
  if (from.size() <= kSmall) {
    std::ranges::sort(from);
    if (result_in_into) std::ranges::copy(from, into.begin());
    return;
  }
  const std::size_t half = from.size() / 2;
  auto low = atl::fork([=] { sort_forked(from.first(half), into.first(half), !result_in_into); });
  sort_forked(from.subspan(half), into.subspan(half), !result_in_into);
  low.join();
  const Numbers sorted = result_in_into ? from : into;
  merge_forked(sorted.first(half), sorted.subspan(half), result_in_into ? into : from);
}

class Sorts : public testing::TestWithParam<int> {};

TEST_P(Sorts, AMergeSortOfForksIsThatOfTheLibrary) {
  atl::Runtime runtime(atl::test::with_workers(GetParam()));
  std::mt19937_64 random(1);
  for (const std::size_t size : {0U, 1U, 255U, 257U, 1000U, 50'000U}) {
    for (const std::uint64_t most : {std::uint64_t{2}, ~std::uint64_t{0}}) {
      std::vector<std::uint64_t> numbers(size);
      for (std::uint64_t& number : numbers) number = random() % most;
      std::vector<std::uint64_t> wanted = numbers;
      std::ranges::sort(wanted);
      std::vector<std::uint64_t> spare(size);
      runtime.run([&] { sort_forked(numbers, spare, false); });
      EXPECT_EQ(numbers, wanted) << size;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Workers, Sorts, testing::Values(1, 2, 8));

}  // namespace
