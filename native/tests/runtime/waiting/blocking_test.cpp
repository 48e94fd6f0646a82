// Blocking sections: values, exceptions, workers that go on meanwhile, and more sections than
// threads.
#include "atoll/runtime/blocking.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "atoll/runtime/event.hpp"
#include "atoll/runtime/latch.hpp"
#include "atoll/runtime/runtime.hpp"
#include "atoll/runtime/sleep.hpp"
#include "atoll/runtime/this_task.hpp"
#include "runtime/parts.hpp"
#include "scheduler/seats.hpp"

namespace {

using atl::test::with_workers;

class Blocking : public testing::TestWithParam<int> {
 protected:
  atl::Runtime runtime{with_workers(GetParam())};
};

TEST_P(Blocking, GivesTheValueOfAThreadThatIsNoWorker) {
  const bool outside =
      runtime.run([] { return atl::blocking([] { return !atl::this_task::inside(); }); });
  EXPECT_TRUE(outside);
  auto owner = runtime.run([] { return atl::blocking([] { return std::make_unique<int>(7); }); });
  EXPECT_EQ(*owner, 7);
  int target = 0;
  runtime.run([&] { atl::blocking([&]() -> int& { return target; }) = 5; });
  EXPECT_EQ(target, 5);
}

TEST(Seats, TheCpusOfANodeAreMadeOnce) {
  const atl::Places places = atl::test::eight_on_four_chiplets();
  const atl::runtime::Seats seats(places, 8, true, false);
  EXPECT_EQ(seats.cpus_near(0).data(), seats.cpus_near(3).data());
  EXPECT_NE(seats.cpus_near(0).data(), seats.cpus_near(4).data());
  std::vector<int> expected;
  for (int core = 4; core < 8; ++core) {
    const std::vector<int>& cpus = places.cores[static_cast<std::size_t>(core)].cpus;
    expected.insert(expected.end(), cpus.begin(), cpus.end());
  }
  EXPECT_TRUE(std::ranges::equal(seats.cpus_near(7), expected));
}

TEST_P(Blocking, ExceptionsComeBack) {
  runtime.run([] {
    EXPECT_THROW(atl::blocking([] { throw std::out_of_range("section"); }), std::out_of_range);
  });
  EXPECT_THROW(atl::blocking([] { throw std::out_of_range("plain"); }), std::out_of_range);
}

TEST_P(Blocking, WorkersGoOnMeanwhile) {
  // Every section waits for what a task does after all sections have begun.
  const int sections = 3 * GetParam();
  atl::Latch begun(sections);
  atl::Event go;
  std::atomic<int> done = 0;
  std::vector<atl::Task<>> tasks;
  for (int each = 0; each < sections; ++each) {
    tasks.push_back(runtime.spawn([&] {
      atl::blocking([&] {
        begun.count_down();
        go.wait();
      });
      EXPECT_TRUE(atl::this_task::inside());
      ++done;
    }));
  }
  runtime.run([&] {
    begun.wait();
    go.set();
  });
  for (atl::Task<>& task : tasks) task.join();
  EXPECT_EQ(done, sections);
}

TEST_P(Blocking, OnAnyOtherThreadItIsACall) {
  const auto here = std::this_thread::get_id();
  EXPECT_EQ(atl::blocking([] { return std::this_thread::get_id(); }), here);
}

// 256 sections that have begun and not ended; the others are in line until one of these ends. On
// one worker, so that the order in which tasks come to their sections is known.
TEST(BlockingLimit, MoreSectionsThanThreadsWaitInLine) {
  constexpr int kThreads = 256;
  constexpr int kMore = 40;
  atl::Runtime runtime(with_workers(1));
  atl::Event first_may_end;
  atl::Event all_may_end;
  std::atomic<int> begun = 0;
  std::vector<atl::Task<>> tasks;
  const auto section = [&](atl::Event& may_end) {
    tasks.push_back(runtime.spawn([&] {
      atl::blocking([&] {
        ++begun;
        may_end.wait();
      });
    }));
  };
  section(first_may_end);
  for (int each = 1; each < kThreads; ++each) section(all_may_end);
  while (begun < kThreads) std::this_thread::yield();

  int came = 0;            // the only worker's
  std::vector<int> order;  // of the only thread that is free
  std::atomic<int> in_line = 0;
  for (int each = 0; each < kMore; ++each) {
    tasks.push_back(runtime.spawn([&] {
      const int number = came++;
      ++in_line;
      atl::blocking([&order, number] { order.push_back(number); });
    }));
  }
  while (in_line < kMore) std::this_thread::yield();
  runtime.run([] {});  // the last of them is suspended by now
  EXPECT_TRUE(order.empty());
  first_may_end.set();
  for (std::size_t each = kThreads; each < tasks.size(); ++each) tasks[each].join();
  std::vector<int> expected(kMore);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(order, expected);
  all_may_end.set();
  for (atl::Task<>& task : tasks) {
    if (task.joinable()) task.join();
  }
}

TEST(BlockingLimit, AThreadThatIsIdleLeaves) {
  atl::Runtime runtime(with_workers(1));
  const auto start = std::chrono::steady_clock::now();
  const pid_t thread = runtime.run([] { return atl::blocking([] { return gettid(); }); });
  while (std::filesystem::exists("/proc/self/task/" + std::to_string(thread))) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    ASSERT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60));
  }
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}

#if defined(ATL_TEST_CHILDREN_HAVE_THREADS)
TEST_P(Blocking, AChildOfForkHasThreadsOfItsOwn) {
  runtime.run([] {
    atl::sleep_for(std::chrono::microseconds(1));
    atl::blocking([] {});
  });
  const int value = atl::test::in_a_child([] {
    atl::Runtime own(with_workers(GetParam()));
    return own.run([] {
      atl::sleep_for(std::chrono::microseconds(1));
      return atl::blocking([] { return 42; });
    });
  });
  EXPECT_EQ(value, 42);
  EXPECT_EQ(runtime.run([] { return atl::blocking([] { return 1; }); }), 1);
}
#endif

INSTANTIATE_TEST_SUITE_P(Workers, Blocking, testing::Values(1, 2, 8),
                         [](const auto& info) { return std::to_string(info.param); });

}  // namespace
