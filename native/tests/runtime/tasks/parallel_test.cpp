// parallel_for, parallel_reduce and all_do: every item once, order, exceptions, nesting.
#include "atoll/runtime/parallel.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "atoll/runtime/all_do.hpp"
#include "atoll/runtime/barrier.hpp"
#include "atoll/runtime/event.hpp"
#include "atoll/runtime/group.hpp"
#include "atoll/runtime/runtime.hpp"
#include "atoll/runtime/task.hpp"
#include "atoll/runtime/this_task.hpp"
#include "runtime/parts.hpp"

namespace {

using atl::test::with_workers;

class Parallel : public testing::TestWithParam<int> {
 protected:
  atl::Runtime runtime{with_workers(GetParam())};
};

TEST_P(Parallel, EveryItemOnce) {
  runtime.run([] {
    for (const int n : {0, 1, 2, 31, 64, 65, 1000, 20'000}) {
      for (const std::uint64_t grain : {0, 1, 7, 100'000}) {
        std::vector<std::atomic<int>> hit(static_cast<std::size_t>(n));
        atl::parallel_for(0, hit.size(), [&](std::size_t i) { ++hit[i]; }, grain);
        EXPECT_TRUE(std::all_of(hit.begin(), hit.end(), [](const auto& h) { return h == 1; }))
            << n << " by " << grain;
      }
    }
  });
}

TEST_P(Parallel, RangesOfAnyKind) {
  runtime.run([] {
    std::vector<int> values(5000, 1);
    atl::parallel_for(values.begin(), values.end(), [](int& value) { ++value; });
    EXPECT_EQ(std::accumulate(values.begin(), values.end(), 0), 10'000);
    std::atomic<int> sum = 0;
    atl::parallel_for(values.cbegin(), values.cend(), [&](const int& value) { sum += value; });
    EXPECT_EQ(sum, 10'000);

    sum = 0;
    atl::parallel_for(-100, 101, [&](int i) { sum += i; }, 3);
    EXPECT_EQ(sum, 0);
    atl::parallel_for(5, -5, [&](int) { ++sum; });
    EXPECT_EQ(sum, 0);
    atl::parallel_for(std::int8_t{-128}, std::int8_t{127}, [&](std::int8_t i) { sum += i; });
    EXPECT_EQ(sum, -128 - 127);

    using Limits = std::numeric_limits<std::int64_t>;
    std::atomic<int> pieces = 0;
    atl::parallel_for(
        Limits::min(), Limits::max(),
        [&](std::int64_t first, std::int64_t last) {
          EXPECT_LT(first, last);
          ++pieces;
        },
        std::uint64_t{1} << 60);
    EXPECT_GE(pieces, 1);
    EXPECT_LE(pieces, 16);
  });
}

TEST_P(Parallel, PiecesTileTheRangeAndHoldTheGrain) {
  runtime.run([] {
    std::vector<std::atomic<int>> hit(3333);
    std::atomic<int> small = 0;
    atl::parallel_for(
        std::size_t{0}, hit.size(),
        [&](std::size_t first, std::size_t last) {
          small += last - first < 10 ? 1 : 0;
          for (; first < last; ++first) ++hit[first];
        },
        10);
    EXPECT_TRUE(std::all_of(hit.begin(), hit.end(), [](const auto& h) { return h == 1; }));
    EXPECT_EQ(small, 0);
  });
}

TEST_P(Parallel, WithoutAGrainAWorkerHasUpTo32Pieces) {
  constexpr int kShare = 32 * 10;
  std::atomic<int> pieces = 0;
  std::atomic<int> small = 0;
  runtime.run([&] {
    atl::parallel_for(0, GetParam() * kShare, [&](int first, int last) {
      ++pieces;
      small += last - first < 10 ? 1 : 0;
    });
  });
  EXPECT_EQ(small, 0);
  EXPECT_LE(pieces, 32 * GetParam());
}

TEST_P(Parallel, ANegativeGrainIsAFault) {
  runtime.run([] {
    EXPECT_THROW(atl::parallel_for(0, 10, [](int) {}, -1), atl::RuntimeFault);
    const auto sum = [](long grain) {
      return atl::parallel_reduce(0, 10, 0, [](int i) { return i; }, std::plus<>(), grain);
    };
    EXPECT_EQ(sum(3), 45);
    EXPECT_THROW(sum(-3), atl::RuntimeFault);
  });
}

TEST_P(Parallel, LoopsInsideLoopsInsideTasks) {
  std::atomic<int> count = 0;
  auto one = runtime.spawn([&] {
    atl::parallel_for(
        0, 30,
        [&](int) {
          atl::parallel_for(
              0, 30,
              [&](int) {
                ++count;
                if (count % 50 == 0) atl::yield();
              },
              1);
        },
        1);
  });
  auto two = runtime.spawn([&] { atl::parallel_for(0, 100, [&](int) { ++count; }); });
  one.join();
  two.join();
  EXPECT_EQ(count, 1000);
}

TEST_P(Parallel, BodiesMayWaitForOtherTasks) {
  atl::Event event;
  std::atomic<int> count = 0;
  runtime.run([&] {
    auto setter = atl::spawn([&] { event.set(); });
    atl::parallel_for(
        0, 100,
        [&](int) {
          event.wait();
          ++count;
        },
        1);
    setter.join();
  });
  EXPECT_EQ(count, 100);
}

TEST_P(Parallel, AnExceptionComesOutAndLeavesTheRestOut) {
  std::atomic<int> begun = 0;
  const auto run = [&] {
    runtime.run([&] {
      atl::parallel_for(
          0, 1'000'000,
          [&](int) {
            ++begun;
            throw std::out_of_range("body");
          },
          1);
    });
  };
  EXPECT_THROW(run(), std::out_of_range);
  // Each worker may have been within one when the first threw.
  EXPECT_LE(begun, GetParam());
}

TEST_P(Parallel, OutsideOfATaskIsAFault) {
  EXPECT_THROW(atl::parallel_for(0, 10, [](int) {}), atl::RuntimeFault);
  EXPECT_THROW(atl::all_do([](int) {}), atl::RuntimeFault);
}

TEST(Call, NamesItselfOutsideOfATask) {
  try {
    atl::call(atl::on_core(0), [] {});
    FAIL() << "it ran";
  } catch (const atl::RuntimeFault& fault) {
    EXPECT_EQ(std::string(fault.what()).find("call was called outside of a task"), 0U);
  }
}

TEST_P(Parallel, ReductionsKeepTheOrder) {
  runtime.run([] {
    for (const int n : {0, 1, 26, 500}) {
      for (const std::uint64_t grain : {0, 1, 3, 1000}) {
        std::string expected;
        for (int i = 0; i < n; ++i) expected += static_cast<char>('a' + i % 26);
        // Concatenation is associative and does not commute.
        const std::string text = atl::parallel_reduce(
            0, n, std::string(),
            [](int i) { return std::string(1, static_cast<char>('a' + i % 26)); }, std::plus<>(),
            grain);
        EXPECT_EQ(text, expected) << n << " by " << grain;
      }
    }
  });
}

TEST_P(Parallel, SumsOfFloatingPointAreTheSameEachTime) {
  std::vector<double> values(10'000);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = 1.0 / static_cast<double>(3 * i + 1);
  const auto sum = [&] {
    return atl::parallel_reduce(
        values.begin(), values.end(), 0.0, [](double value) { return value; }, std::plus<>(), 64);
  };
  const auto by_pieces = [&] {
    return atl::parallel_reduce(
        values.begin(), values.end(), 0.0,
        [](auto first, auto last) { return std::accumulate(first, last, 0.0); }, std::plus<>(), 64);
  };
  atl::Runtime alone(with_workers(1));
  const double first = alone.run(sum);
  for (int round = 0; round < 20; ++round) {
    EXPECT_EQ(runtime.run(sum), first);
    EXPECT_EQ(runtime.run(by_pieces), first);
  }
}

TEST_P(Parallel, AReductionOfAllNumbersThereAreIsOneToo) {
  using Limits = std::numeric_limits<std::int64_t>;
  const auto count = [](std::int64_t first, std::int64_t last) {
    return static_cast<std::uint64_t>(last) - static_cast<std::uint64_t>(first);
  };
  for (const std::uint64_t grain : {std::uint64_t{0}, std::uint64_t{1} << 60, UINT64_MAX}) {
    EXPECT_EQ(runtime.run([&] {
      return atl::parallel_reduce(Limits::min(), Limits::max(), std::uint64_t{0}, count,
                                  std::plus<>(), grain);
    }),
              UINT64_MAX);
  }
}

TEST_P(Parallel, AnExceptionOfAReductionComesOut) {
  EXPECT_THROW(runtime.run([] {
    return atl::parallel_reduce(
        0, 1000, 0, [](int i) { return i == 500 ? throw std::out_of_range("map") : i; },
        std::plus<>());
  }),
               std::out_of_range);
}

TEST_P(Parallel, AllDoCallsEachWorkerOnceAndStaysThere) {
  for (int round = 0; round < 20; ++round) {
    std::vector<std::atomic<int>> hit(static_cast<std::size_t>(GetParam()));
    std::atomic<int> wrong = 0;
    std::atomic<bool> over = false;
    auto busy = runtime.spawn([&] {
      while (!over) atl::yield();
    });
    runtime.run([&] {
      atl::all_do([&](int rank) {
        ++hit[static_cast<std::size_t>(rank)];
        wrong += atl::this_task::worker() == rank ? 0 : 1;
        for (int times = 0; times < 3; ++times) atl::yield();
        wrong += atl::this_task::worker() == rank ? 0 : 1;
      });
    });
    over = true;
    busy.join();
    EXPECT_EQ(wrong, 0);
    EXPECT_TRUE(std::all_of(hit.begin(), hit.end(), [](const auto& h) { return h == 1; }));
  }
}

// How many pieces a loop over 6,400 items has.
int pieces_of_a_loop() {
  return atl::parallel_reduce(0, 6400, 0, [](int, int) { return 1; }, std::plus<>());
}

TEST_P(Parallel, ALoopInAGroupOrPlaceCountsItsWorkers) {
  for (const int threads : {1, GetParam()}) {
    atl::Group group(runtime, {.threads = threads, .approach = "static-local"});
    EXPECT_EQ(group.run(pieces_of_a_loop), 32 * threads);
    std::atomic<int> calls = 0;
    group.run([&] { atl::parallel_for(0, 6400, [&](int, int) { ++calls; }); });
    EXPECT_LE(calls, 32 * threads);
  }
  EXPECT_EQ(runtime.spawn(atl::on_worker(0), pieces_of_a_loop).join(), 32);
  EXPECT_EQ(runtime.spawn(atl::on_chiplet(0), pieces_of_a_loop).join(),
            32 * std::min(2, GetParam()));
}

TEST_P(Parallel, CallsOfAllDoRunAtTheSameTime) {
  atl::Barrier barrier(GetParam());  // nobody passes unless all are there
  runtime.run([&] { atl::all_do([&](int) { barrier.arrive_and_wait(); }); });
}

TEST_P(Parallel, AllDoLetsExceptionsOutWhenAllAreDone) {
  std::atomic<int> done = 0;
  EXPECT_THROW(runtime.run([&] {
    atl::all_do([&](int) {
      ++done;
      throw std::out_of_range("share");
    });
  }),
               std::out_of_range);
  EXPECT_EQ(done, GetParam());
}

TEST_P(Parallel, AllDoAtAPlaceOrInAGroupCountsItsWorkers) {
  const int workers = GetParam();
  const auto check = [&](int expected, auto&& all_do) {
    std::vector<std::atomic<int>> hit(static_cast<std::size_t>(workers));
    std::vector<std::atomic<int>> on(static_cast<std::size_t>(workers));
    std::atomic<int> wrong = 0;
    all_do([&](int rank, int size, atl::Barrier& barrier) {
      wrong += size == expected ? 0 : 1;
      ++hit.at(static_cast<std::size_t>(rank));
      ++on.at(static_cast<std::size_t>(atl::this_task::worker()));
      barrier.arrive_and_wait();
      for (int other = 0; other < size; ++other) {
        wrong += hit[static_cast<std::size_t>(other)] == 1 ? 0 : 1;
      }
    });
    EXPECT_EQ(wrong, 0);
    const auto called = [](const auto& count) { return count == 1; };
    EXPECT_EQ(std::ranges::count_if(hit, called), expected);
    EXPECT_EQ(std::ranges::count_if(on, called), expected);
  };
  check(workers, [&](auto call) { runtime.all_do(call); });
  check(std::min(2, workers), [&](auto call) { runtime.all_do(atl::on_chiplet(0), call); });
  check(1, [&](auto call) { runtime.all_do(atl::on_worker(workers - 1), call); });
  atl::Group group(runtime, {.threads = (workers + 1) / 2, .approach = "static-local"});
  check((workers + 1) / 2, [&](auto call) { group.all_do(call); });
  // From a task that is not in the group.
  check((workers + 1) / 2,
        [&](auto call) { runtime.run([&] { atl::all_do(group.place(), call); }); });
  std::atomic<int> ranks = 0;
  group.all_do([&](int, int size) { ranks += 10 * size; });
  EXPECT_EQ(ranks, 10 * ((workers + 1) / 2) * ((workers + 1) / 2));
  EXPECT_THROW(runtime.all_do(atl::on_chiplet(99), [](int) {}), atl::RuntimeFault);
}

TEST_P(Parallel, ATaskOnAWorkerRunsThereAndNoOtherExists) {
  for (int rank = 0; rank < GetParam(); ++rank) {
    EXPECT_EQ(runtime.spawn(atl::on_worker(rank), [] { return atl::this_task::worker(); }).join(),
              rank);
  }
  const auto beyond = [&](int rank) { runtime.spawn(atl::on_worker(rank), [] {}).join(); };
  EXPECT_THROW(beyond(GetParam()), atl::RuntimeFault);
  EXPECT_THROW(beyond(-1), atl::RuntimeFault);
}

INSTANTIATE_TEST_SUITE_P(Workers, Parallel, testing::Values(1, 2, 8),
                         [](const auto& info) { return std::to_string(info.param); });

}  // namespace
