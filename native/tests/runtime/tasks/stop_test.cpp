// Stopping: loops that are asked to stop, siblings of what failed, parts of a task with a limit.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>

#include "atoll/runtime/event.hpp"
#include "atoll/runtime/parallel.hpp"
#include "atoll/runtime/runtime.hpp"
#include "atoll/runtime/scope.hpp"
#include "atoll/runtime/sleep.hpp"
#include "atoll/runtime/stoppable.hpp"
#include "atoll/runtime/task.hpp"
#include "atoll/runtime/this_task.hpp"
#include "runtime/parts.hpp"

namespace {

using atl::test::with_workers;
using namespace std::chrono_literals;

constexpr long kItems = 1'000'000'000;

void until_stopped() {
  while (!atl::this_task::stop_token().stop_requested()) atl::yield();
}

class Stopping : public testing::TestWithParam<int> {
 protected:
  // Starts a scan of very many items, stops it when it has begun, and lets the bodies go on then.
  // Returns how many items were begun.
  template <class Scan>
  long stopped(Scan scan) {
    std::atomic<long> begun = 0;
    std::atomic<bool> asked = false;
    auto task = runtime.spawn([&] {
      scan([&] {
        ++begun;
        while (!asked) std::this_thread::yield();  // not atl::yield: another body would begin
      });
    });
    while (begun == 0) std::this_thread::yield();
    task.request_stop();
    asked = true;
    EXPECT_THROW(task.join(), atl::Stopped);
    return begun;
  }

  atl::Runtime runtime{with_workers(GetParam())};
};

TEST_P(Stopping, ALoopOfManyItemsEndsEarly) {
  EXPECT_LE(stopped([](auto body) { atl::parallel_for(0L, kItems, [=](long) { body(); }); }),
            1024 * GetParam());
  EXPECT_LE(
      stopped([](auto body) { atl::parallel_for(0L, kItems, [=](long, long) { body(); }, 1); }),
      GetParam());
  EXPECT_LE(stopped([](auto body) {
              atl::parallel_for(0L, kItems, [=](long) { body(); }, kItems);  // one piece
            }),
            1024);
}

TEST_P(Stopping, AReductionOfManyItemsEndsEarly) {
  const auto reduce = [](auto body, long grain) {
    const auto map = [=](long) {
      body();
      return 1L;
    };
    static_cast<void>(atl::parallel_reduce(0L, kItems, 0L, map, std::plus<>(), grain));
  };
  EXPECT_LE(stopped([&](auto body) { reduce(body, 0); }), 1024 * GetParam());
  EXPECT_LE(stopped([&](auto body) { reduce(body, 1); }), GetParam());
}

TEST_P(Stopping, ALoopInATaskThatWasStoppedBeginsNothingAndOneThatHasEndedIsWhole) {
  runtime.run([&] {
    atl::Stoppable part;
    int called = 0;
    atl::parallel_for(0, 1, [&](int) {
      ++called;
      part.request_stop();
    });
    EXPECT_EQ(called, 1);
    EXPECT_THROW(atl::parallel_for(0, 1, [&](int) { ++called; }), atl::Stopped);
    EXPECT_THROW(atl::parallel_for(0, 100, [&](int) { ++called; }, 1), atl::Stopped);
    EXPECT_EQ(called, 1);
  });
}

TEST_P(Stopping, AChildThatThrowsStopsTheOthersOfItsScope) {
  std::atomic<int> stopped = 0;
  runtime.run([&] {
    atl::Scope scope;
    for (int i = 0; i < 100; ++i) {
      scope.fork([&stopped, i] {
        if (i == 3) throw std::out_of_range("child 3");
        until_stopped();
        ++stopped;
      });
    }
    EXPECT_THROW(scope.join(), std::out_of_range);
    EXPECT_EQ(stopped, 99);
    scope.fork(until_stopped);  // it stays stopped
    scope.join();
  });
}

TEST_P(Stopping, AScopeThatIsLeftByAnExceptionStopsItsChildren) {
  std::atomic<int> stopped = 0;
  const auto leave = [&] {
    atl::Scope scope;
    for (int i = 0; i < 10; ++i) {
      scope.fork([&stopped] {
        until_stopped();
        ++stopped;
      });
    }
    throw std::out_of_range("maker");
  };
  EXPECT_THROW(runtime.run(leave), std::out_of_range);
  EXPECT_EQ(stopped, 10);
}

TEST_P(Stopping, ABodyThatThrowsStopsTheOthersAndItsExceptionComesOut) {
  std::atomic<bool> others = GetParam() == 1;
  const auto loop = [&] {
    atl::parallel_for(
        0, 100,
        [&](int i) {
          if (i == 0) {
            while (!others) atl::yield();
            throw std::out_of_range("body 0");
          }
          others = true;
          atl::parallel_for(0L, kItems, [](long) { until_stopped(); });
        },
        1);
  };
  EXPECT_THROW(runtime.run(loop), std::out_of_range);
  // The exception stops the loop, not the task.
  runtime.run([&] {
    EXPECT_THROW(loop(), std::out_of_range);
    EXPECT_FALSE(atl::this_task::stop_token().stop_requested());
  });
}

TEST_P(Stopping, APartOfATaskEndsAtItsLimitOrTokenOrRequest) {
  runtime.run([&] {
    const auto endless = [] { atl::parallel_for(0L, kItems, [](long) { until_stopped(); }); };
    const auto by = [&](auto... limits) {
      atl::Stoppable part(limits...);
      endless();
    };
    EXPECT_THROW(by(1ms), atl::Stopped);
    EXPECT_THROW(by(std::chrono::steady_clock::now()), atl::Stopped);
    std::stop_source source;
    auto asker = atl::spawn([&] { source.request_stop(); });
    EXPECT_THROW(by(source.get_token()), atl::Stopped);
    EXPECT_THROW(by(1h, source.get_token()), atl::Stopped);
    asker.join();

    atl::Stoppable outer;
    {
      atl::Stoppable inner(1h);
      atl::Scope scope;
      scope.fork([&] { inner.request_stop(); });
      EXPECT_THROW(endless(), atl::Stopped);
      scope.join();
      EXPECT_FALSE(outer.stop_requested());
    }
    atl::parallel_for(0, 10, [](int) {});
    outer.request_stop();
    atl::Stoppable inner;
    EXPECT_TRUE(inner.stop_requested());
    EXPECT_THROW(endless(), atl::Stopped);
  });
  EXPECT_THROW(atl::Stoppable(), atl::RuntimeFault);
}

// On one worker the task must make room for what the callback waits for, also when it ends.
TEST_P(Stopping, AStopCallbackOfALimitMaySleepAndWaitForTasks) {
  std::thread::id caller = std::this_thread::get_id();
  // In time: it is not called here, by its own construction.
  for (auto limit = 1ms; caller == std::this_thread::get_id(); limit *= 2) {
    std::promise<std::stop_token> token;
    std::atomic<bool> asleep = false;
    std::atomic<bool> slept = false;
    auto task = runtime.spawn([&] {
      {
        atl::Stoppable part(limit);
        token.set_value(atl::this_task::stop_token());
        while (!asleep) atl::yield();
      }
      return slept.load();
    });
    const std::stop_callback at_stop(token.get_future().get(), [&] {
      caller = std::this_thread::get_id();
      asleep = true;
      atl::sleep_for(1ms);
      runtime.run([] { atl::sleep_for(1ms); });
      slept = true;
    });
    const bool waited_for_it = task.join();
    EXPECT_TRUE(waited_for_it || caller == std::this_thread::get_id());
  }
}

TEST_P(Stopping, ARequestBeforeTheFirstTokenReachesAllTokens) {
  runtime.run([&] {
    atl::Stoppable outer;
    atl::Stoppable inner;
    atl::Scope scope;
    outer.request_stop();
    scope.fork([] { EXPECT_TRUE(atl::this_task::stop_token().stop_requested()); });
    scope.join();
    EXPECT_TRUE(atl::this_task::stop_token().stop_requested());
  });
}

INSTANTIATE_TEST_SUITE_P(Workers, Stopping, testing::Values(1, 2, 8),
                         [](const auto& info) { return std::to_string(info.param); });

}  // namespace
