// Values per worker, and loops that run where the parts of an array lie.
#include "atoll/runtime/worker_local.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <functional>
#include <mutex>
#include <set>
#include <stdexcept>
#include <vector>

#include "atoll/runtime/parallel_array.hpp"
#include "atoll/runtime/runtime.hpp"
#include "atoll/runtime/scope.hpp"
#include "atoll/runtime/this_task.hpp"
#include "runtime/parts.hpp"

namespace {

using atl::test::with_workers;

class WorkerLocals : public testing::TestWithParam<int> {
 protected:
  atl::Runtime runtime{with_workers(GetParam())};
};

TEST_P(WorkerLocals, SumsOfALoopAreComplete) {
  runtime.run([&] {
    std::atomic<int> made = 0;
    atl::WorkerLocal<std::vector<long>> sums([&] {
      ++made;
      return std::vector<long>(1);
    });
    for (int loop = 0; loop < 3; ++loop) {
      atl::parallel_for(0, 10'000, [&](int i) { (*sums.lease())[0] += i; });
    }
    EXPECT_LE(made, GetParam());
    const auto add = [](std::vector<long> a, const std::vector<long>& b) {
      a[0] += b[0];
      return a;
    };
    EXPECT_EQ(sums.combine(add)[0], 3 * 49'995'000L);
  });
}

// A plain counter: a second user at the same time would be a race, and lose counts.
TEST_P(WorkerLocals, ALeaseIsAloneAlsoAcrossWaits) {
  runtime.run([&] {
    struct Value {
      long count = 0;
      bool busy = false;
    };
    atl::WorkerLocal<Value> values;
    atl::Scope scope;
    for (int task = 0; task < 100; ++task) {
      scope.fork([&] {
        const auto mine = values.lease();
        for (int turn = 0; turn < 20; ++turn) {
          EXPECT_FALSE(mine->busy);
          mine->busy = true;
          ++mine->count;
          atl::yield();  // maybe on another worker afterwards
          mine->busy = false;
        }
      });
    }
    scope.join();
    long sum = 0;
    values.for_each([&](const Value& value) { sum += value.count; });
    EXPECT_EQ(sum, 2000);
  });
}

TEST_P(WorkerLocals, MisuseIsAFault) {
  EXPECT_THROW(atl::WorkerLocal<int>(), atl::RuntimeFault);
  atl::Runtime other(with_workers(GetParam()));
  runtime.run([&] {
    atl::WorkerLocal<int> values([] { return 5; });
    EXPECT_EQ(values.combine(std::plus<>()), 5);  // of none: a new one
    {
      const auto lease = values.lease();
      EXPECT_THROW(values.for_each([](int) {}), atl::RuntimeFault);
    }
    EXPECT_THROW(other.run([&] { static_cast<void>(values.lease()); }), atl::RuntimeFault);
    atl::WorkerLocal<int> failing([]() -> int { throw std::out_of_range("make"); });
    EXPECT_THROW(static_cast<void>(failing.lease()), std::out_of_range);
  });
}

INSTANTIATE_TEST_SUITE_P(Workers, WorkerLocals, testing::Values(1, 2, 8),
                         [](const auto& info) { return std::to_string(info.param); });

class PartsOfAnArray : public testing::Test {
 protected:
  // The made-up nodes have no memory: all parts lie on the real one. The loop asks the runtime.
  atl::Array<int> array_of(std::size_t size, int parts = 8) {
    const atl::NodeMap map{{0}, std::vector<int>(static_cast<std::size_t>(parts), 0), 0};
    return atl::Array<int>::partitioned(size, map);
  }

  atl::Runtime runtime{with_workers(8)};
};

TEST_F(PartsOfAnArray, EachElementIsProcessedOnceOnTheNodeOfItsPart) {
  std::vector<int> node_of_rank;
  for (const int core : runtime.cores()) {
    node_of_rank.push_back(runtime.places().cores[static_cast<std::size_t>(core)].node);
  }
  EXPECT_NE(node_of_rank.front(), node_of_rank.back());
  for (const std::size_t size : {0, 1, 5000, 100'000}) {
    for (const int grain : {0, 1, 1000}) {
      if (grain == 1 && size > 5000) continue;
      auto array = array_of(size);
      runtime.run([&] {
        atl::parallel_for(
            array,
            [&](int& element) {
              const auto core = static_cast<std::size_t>(atl::this_task::core());
              element += 1 + 10 * (1 + runtime.places().cores[core].node);
              if (element % 100 == 0) atl::yield();
            },
            grain);
      });
      for (int rank = 0; rank < 8; ++rank) {
        for (const int element : array.part(rank)) {
          ASSERT_EQ(element, 1 + 10 * (1 + node_of_rank[static_cast<std::size_t>(rank)]));
        }
      }
    }
  }
}

TEST_F(PartsOfAnArray, PiecesAreRunsOfElementsOfOnePart) {
  auto array = array_of(100'000);
  std::atomic<int> across = 0;
  runtime.run([&] {
    atl::parallel_for(array, [&](int* first, int* last) {
      int parts = 0;
      for (int rank = 0; rank < 8; ++rank) {
        const auto part = array.part(rank);
        if (!part.empty() && first < &part.back() + 1 && last > part.data()) ++parts;
      }
      across += parts == 1 ? 0 : 1;
      for (; first < last; ++first) ++*first;
    });
  });
  EXPECT_EQ(across, 0);
  for (const int element : array) ASSERT_EQ(element, 1);
}

TEST_F(PartsOfAnArray, AnExceptionComesOutAndAStopEndsIt) {
  auto array = array_of(100'000);
  runtime.run([&] {
    std::atomic<bool> thrown = false;
    EXPECT_THROW(atl::parallel_for(array,
                                   [&](int& element) {
                                     if (&element == array.data()) {
                                       thrown = true;
                                       throw std::out_of_range("element 0");
                                     }
                                     while (!thrown) atl::yield();
                                   }),
                 std::out_of_range);
    atl::Stoppable part;
    part.request_stop();
    EXPECT_THROW(atl::parallel_for(array, [](int&) {}), atl::Stopped);
  });
}

TEST_F(PartsOfAnArray, OtherNumbersOfPartsAreAFaultAndOneIsAnyRange) {
  auto three = array_of(100'000, 3);
  auto one = atl::Array<int>::local(1000, 0);
  runtime.run([&] {
    EXPECT_THROW(atl::parallel_for(three, [](int&) {}), atl::RuntimeFault);
    atl::parallel_for(one, [](int& element) { ++element; });
  });
  for (const int element : one) ASSERT_EQ(element, 1);
  EXPECT_THROW(atl::parallel_for(three, [](int&) {}), atl::RuntimeFault);
}

}  // namespace
