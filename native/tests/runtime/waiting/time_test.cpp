// Sleeps and timed waits: tests that they last long enough, not that they end soon.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <stop_token>
#include <thread>
#include <vector>

#include "atoll/runtime/detail/deadline.hpp"
#include "atoll/runtime/event.hpp"
#include "atoll/runtime/mutex.hpp"
#include "atoll/runtime/runtime.hpp"
#include "atoll/runtime/sleep.hpp"
#include "atoll/runtime/this_task.hpp"
#include "runtime/parts.hpp"
#include "waiting/timer.hpp"

namespace {

using namespace std::chrono_literals;
using atl::test::with_workers;
using std::chrono::steady_clock;

class Time : public testing::TestWithParam<int> {
 protected:
  atl::Runtime runtime{with_workers(GetParam())};
};

TEST_P(Time, ASleepIsNotTooShort) {
  const auto sleeps = [] {
    const auto start = steady_clock::now();
    atl::sleep_for(3ms);
    EXPECT_GE(steady_clock::now() - start, 3ms);
    atl::sleep_until(start + 5ms);
    EXPECT_GE(steady_clock::now() - start, 5ms);
    const auto wall = std::chrono::system_clock::now() + 2ms;
    atl::sleep_until(wall);
    atl::sleep_for(-1s);
    EXPECT_TRUE(atl::sleep_for(1ms, std::stop_token()));
    EXPECT_TRUE(atl::sleep_until(start, std::stop_token()));
  };
  runtime.run(sleeps);
  sleeps();
}

TEST_P(Time, SleepersWakeInTheOrderOfTheirDeadlinesOnOneWorker) {
  // On several workers, two that wake close together may overtake each other.
  std::vector<int> order;
  std::atomic<bool> late = true;
  for (auto ahead = 5ms; late; ahead *= 2) {
    order.clear();
    const auto start = steady_clock::now() + ahead;
    std::atomic<int> begun = 0;
    atl::Mutex mutex;
    std::vector<atl::Task<>> tasks;
    for (const int place : {3, 0, 4, 1, 2}) {
      tasks.push_back(runtime.spawn([&, place] {
        ++begun;
        atl::sleep_until(start + place * 100us);
        const std::lock_guard lock(mutex);
        order.push_back(place);
      }));
    }
    // Once the only worker is here and all have begun, all are asleep: in time, or once more with
    // more time ahead.
    tasks.push_back(runtime.spawn([&] {
      while (begun < 5) atl::yield();
      late = steady_clock::now() >= start;
    }));
    for (atl::Task<>& task : tasks) task.join();
    EXPECT_EQ(order.size(), 5U);
  }
  if (GetParam() == 1) {
    EXPECT_EQ(order, (std::vector{0, 1, 2, 3, 4}));
  }
}

TEST_P(Time, AStopEndsASleep) {
  std::stop_source source;
  std::vector<atl::Task<>> tasks;
  std::atomic<int> stopped = 0;
  for (int each = 0; each < 20; ++each) {
    tasks.push_back(
        runtime.spawn([&] { stopped += atl::sleep_for(1h, source.get_token()) ? 0 : 1; }));
  }
  std::jthread thread([&] { stopped += atl::sleep_for(1h, source.get_token()) ? 0 : 1; });
  source.request_stop();
  for (atl::Task<>& task : tasks) task.join();
  thread.join();
  EXPECT_EQ(stopped, 21);
}

TEST_P(Time, StopsAndDeadlinesAtTheSameTimeWakeEachOnce) {
  for (int round = 0; round < 50; ++round) {
    std::stop_source source;
    atl::Event event;
    std::vector<atl::Task<>> tasks;
    std::atomic<int> out = 0;
    for (int each = 0; each < 6; ++each) {
      tasks.push_back(runtime.spawn([&, each] {
        event.wait_for(std::chrono::microseconds(40 * each), source.get_token());
        ++out;
      }));
    }
    std::jthread stopper([&] {
      source.request_stop();
      event.set();
    });
    for (atl::Task<>& task : tasks) task.join();
    EXPECT_EQ(out, 6);
  }
}

TEST_P(Time, AWaitThatIsLateSaysSoAndTheEventStillWorks) {
  atl::Event event;
  const auto start = steady_clock::now();
  runtime.run([&] { EXPECT_FALSE(event.wait_for(2ms)); });
  EXPECT_GE(steady_clock::now() - start, 2ms);
  EXPECT_FALSE(event.wait_until(steady_clock::now()));
  auto waiter = runtime.spawn([&] { return event.wait_for(std::chrono::hours::max()); });
  event.set();
  EXPECT_TRUE(waiter.join());
}

INSTANTIATE_TEST_SUITE_P(Workers, Time, testing::Values(1, 2, 8),
                         [](const auto& info) { return std::to_string(info.param); });

TEST(Timer, RingsInOrderWhateverIsTakenOut) {
  struct Ring : atl::runtime::Timer::Entry {
    std::vector<int>* rung = nullptr;
    int number = 0;
  };
  std::vector<int> rung;
  std::vector<int> left;
  for (int number = 0; number < 100; ++number) {
    if (number % 3 != 0) left.push_back(number);
  }
  bool late = true;
  for (auto ahead = 5ms; late; ahead *= 2) {
    rung.clear();
    std::vector<Ring> entries(100);
    atl::runtime::Timer& timer = atl::runtime::Timer::waits();
    const auto start = steady_clock::now() + ahead;
    for (int at = 0; at < 100; ++at) {
      // 37 and 100 have no common divisor: all numbers from 0 to 99, mixed.
      Ring& entry = entries[static_cast<std::size_t>(at)];
      entry.rung = &rung;
      entry.number = at * 37 % 100;
      entry.ring = [](atl::runtime::Timer::Entry* rings) {
        auto* const self = static_cast<Ring*>(rings);
        self->rung->push_back(self->number);
      };
      timer.add(entry, start + std::chrono::microseconds(entry.number));
    }
    for (Ring& entry : entries) {
      if (entry.number % 3 == 0) timer.remove(entry);
    }
    late = steady_clock::now() >= start;  // then once more, with more time ahead
    // What rings last has all others before it.
    struct Last : atl::runtime::Timer::Entry {
      atl::Event event;
    } last;
    last.ring = [](atl::runtime::Timer::Entry* rings) { static_cast<Last*>(rings)->event.set(); };
    timer.add(last, start + 1ms);
    last.event.wait();
    timer.remove(last);
  }
  EXPECT_EQ(rung, left);
}

TEST(Deadline, DoesNotOverflow) {
  EXPECT_EQ(atl::detail::deadline_after(std::chrono::hours::max()), atl::detail::kNever);
  EXPECT_EQ(atl::detail::deadline_after(std::chrono::duration<double>(1e300)), atl::detail::kNever);
  EXPECT_LE(atl::detail::deadline_after(-1h), steady_clock::now());
  EXPECT_GT(atl::detail::deadline_after(1h), steady_clock::now());
}

}  // namespace
