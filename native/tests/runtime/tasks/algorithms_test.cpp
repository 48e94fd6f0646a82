// invoke, scan and sort against the serial algorithms, with random input of awkward sizes.
#include "atoll/runtime/algorithms.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "atoll/runtime/runtime.hpp"
#include "atoll/runtime/this_task.hpp"
#include "runtime/parts.hpp"

namespace {

using atl::test::soon;
using atl::test::with_workers;

class Algorithms : public testing::TestWithParam<int> {
 protected:
  std::vector<int> random_values(std::size_t count, int distinct) {
    std::uniform_int_distribution<int> any(0, distinct - 1);
    std::vector<int> values(count);
    for (int& value : values) value = any(random_);
    return values;
  }

  atl::Runtime runtime{with_workers(GetParam())};
  std::mt19937 random_{1};
};

constexpr std::size_t kSizes[] = {0, 1, 2, 1023, 1024, 1025, 2049, 20'011};

TEST_P(Algorithms, ASortIsThatOfTheLibrary) {
  for (const std::size_t count : kSizes) {
    for (const int distinct : {1, 3, 1'000'000}) {
      std::vector<int> values = random_values(count, distinct);
      std::vector<int> expected = values;
      std::sort(expected.begin(), expected.end());
      runtime.run([&] { atl::parallel_sort(values.begin(), values.end()); });
      EXPECT_EQ(values, expected) << count << " of " << distinct;
    }
  }
  std::vector<int> values = random_values(10'000, 1000);
  std::vector<int> expected = values;
  std::sort(expected.begin(), expected.end());
  runtime.run([&] { atl::parallel_sort(values.rbegin(), values.rend(), std::greater<>()); });
  EXPECT_EQ(values, expected);
  runtime.run(
      [&] { atl::parallel_sort(values.data(), values.data() + values.size(), std::greater<>()); });
  EXPECT_TRUE(std::equal(values.begin(), values.end(), expected.rbegin()));
}

TEST_P(Algorithms, ASortMovesElementsThatCannotBeCopied) {
  std::vector<int> expected = random_values(10'000, 1000);
  std::vector<std::unique_ptr<std::string>> texts;
  for (const int value : expected)
    texts.push_back(std::make_unique<std::string>(std::to_string(value)));
  std::sort(expected.begin(), expected.end());
  runtime.run([&] {
    atl::parallel_sort(texts.begin(), texts.end(),
                       [](const auto& a, const auto& b) { return std::stoi(*a) < std::stoi(*b); });
  });
  for (std::size_t i = 0; i < expected.size(); ++i)
    ASSERT_EQ(*texts[i], std::to_string(expected[i]));
}

// Until a comparison, whoever moves the first one waits for another worker to move one.
struct MovedByTwo {
  explicit MovedByTwo(int given) : value(given) {}
  MovedByTwo(MovedByTwo&& other) noexcept : value(other.value) {
    if (waits.exchange(false)) {
      first = std::this_thread::get_id();
      begun = true;
      two = soon([] { return two.load(); });
    } else if (begun && std::this_thread::get_id() != first) {
      two = true;
    }
  }
  MovedByTwo& operator=(MovedByTwo&&) noexcept = default;
  ~MovedByTwo() = default;
  bool operator<(const MovedByTwo& other) const {
    begun = false;
    return value < other.value;
  }

  static inline std::thread::id first;
  static inline std::atomic<bool> waits = false;
  static inline std::atomic<bool> begun = false;
  static inline std::atomic<bool> two = false;
  int value;
};

TEST(Sort, MovesItsElementsOnSeveralWorkersFromTheBeginning) {
  atl::Runtime runtime(with_workers(2));
  std::vector<MovedByTwo> values;
  values.reserve(20'000);
  for (int value = 20'000; value > 0; --value) values.emplace_back(value);
  MovedByTwo::waits = true;
  runtime.run([&] { atl::parallel_sort(values.begin(), values.end()); });
  EXPECT_TRUE(MovedByTwo::two);
  EXPECT_TRUE(std::is_sorted(values.begin(), values.end()));
}

TEST_P(Algorithms, ASortThatThrowsLeavesValidElements) {
  for (const int until : {1, 5'000, 100'000}) {
    std::vector<std::shared_ptr<int>> values;
    for (const int value : random_values(20'000, 20'000))
      values.push_back(std::make_shared<int>(value));
    const std::vector<std::shared_ptr<int>> before = values;
    std::atomic<int> calls = 0;
    const auto less = [&](const auto& a, const auto& b) {
      if (++calls == until) throw std::out_of_range("less");
      return *a < *b;
    };
    const auto sort = [&] {
      runtime.run([&] { atl::parallel_sort(values.begin(), values.end(), less); });
    };
    EXPECT_THROW(sort(), std::out_of_range);
    // The library's sort of a leaf may drop the element that it holds; here nothing else gets lost.
    std::size_t lost = 0;
    for (const auto& value : values) lost += value == nullptr ? 1 : 0;
    EXPECT_LE(lost, 1U);
    for (const auto& value : before) EXPECT_LE(value.use_count(), 2);  // none twice
  }
}

TEST_P(Algorithms, AScanIsThatOfTheLibrary) {
  for (const std::size_t count : kSizes) {
    for (const std::uint64_t grain : {0, 1, 5000, 1'000'000}) {
      std::vector<int> values = random_values(count, 100);
      std::vector<long> expected(count);
      std::vector<long> found(count);
      const long sum = std::accumulate(values.begin(), values.end(), 7L);
      std::exclusive_scan(values.begin(), values.end(), expected.begin(), 7L);
      runtime.run([&] {
        EXPECT_EQ(atl::parallel_exclusive_scan(values.begin(), values.end(), found.begin(), 7L,
                                               std::plus<>(), grain),
                  sum);
      });
      EXPECT_EQ(found, expected) << count << " by " << grain;
      std::inclusive_scan(values.begin(), values.end(), expected.begin(), std::plus<>(), 7L);
      runtime.run([&] {
        EXPECT_EQ(atl::parallel_inclusive_scan(values.begin(), values.end(), found.begin(), 7L,
                                               std::plus<>(), grain),
                  sum);
        // In place.
        atl::parallel_inclusive_scan(values.begin(), values.end(), values.begin(), 7);
      });
      EXPECT_EQ(found, expected);
      EXPECT_TRUE(std::equal(values.begin(), values.end(), expected.begin()));
    }
  }
}

TEST_P(Algorithms, AScanKeepsTheOrder) {
  std::vector<std::string> letters;
  for (int i = 0; i < 3000; ++i) letters.emplace_back(1, static_cast<char>('a' + i % 26));
  std::vector<std::string> found(letters.size());
  runtime.run([&] {
    atl::parallel_exclusive_scan(letters.begin(), letters.end(), found.begin(), std::string(">"));
  });
  std::string expected = ">";
  for (std::size_t i = 0; i < letters.size(); ++i) {
    ASSERT_EQ(found[i], expected);
    expected += letters[i];
  }
}

TEST_P(Algorithms, InvokeCallsEachAndThrowsTheFirst) {
  runtime.run([] {
    std::atomic<int> sum = 0;
    atl::parallel_invoke([&] { sum += 1; }, [&] { sum += 10; },
                         [&] { atl::parallel_invoke([&] { sum += 100; }); });
    EXPECT_EQ(sum, 111);
    const auto until_stopped = [] {
      while (!atl::this_task::stop_token().stop_requested()) atl::yield();
    };
    EXPECT_THROW(atl::parallel_invoke(
                     until_stopped, [] { throw std::out_of_range("second"); }, until_stopped),
                 std::out_of_range);
  });
}

TEST(Invoke, LeavesOutWhatHasNotBegunWhenItsTaskIsAskedToStop) {
  atl::Runtime runtime(with_workers(1));
  runtime.run([] {
    atl::Stoppable part;
    bool second = false;
    EXPECT_THROW(atl::parallel_invoke([&] { part.request_stop(); }, [&] { second = true; }),
                 atl::Stopped);
    EXPECT_FALSE(second);
  });
}

TEST_P(Algorithms, TheyStopWithTheirTaskAndNeedOne) {
  runtime.run([&] {
    std::vector<int> values = random_values(10'000, 100);
    const std::vector<int> before = values;
    atl::Stoppable part;
    part.request_stop();
    EXPECT_THROW(atl::parallel_sort(values.begin(), values.end()), atl::Stopped);
    EXPECT_THROW(atl::parallel_inclusive_scan(values.begin(), values.end(), values.begin(), 0),
                 atl::Stopped);
    EXPECT_THROW(atl::parallel_invoke([] {}, [] {}), atl::Stopped);
    EXPECT_EQ(values, before);
  });
  std::vector<int> values(3);
  EXPECT_THROW(atl::parallel_sort(values.begin(), values.end()), atl::RuntimeFault);
  EXPECT_THROW(atl::parallel_invoke([] {}), atl::RuntimeFault);
}

INSTANTIATE_TEST_SUITE_P(Workers, Algorithms, testing::Values(1, 2, 8),
                         [](const auto& info) { return std::to_string(info.param); });

}  // namespace
