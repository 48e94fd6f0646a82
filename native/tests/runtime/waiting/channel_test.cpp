// Channel and Semaphore: every item once and in order, backpressure, closing, permits, deadlines,
// stops.
#include "atoll/runtime/channel.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "atoll/runtime/runtime.hpp"
#include "atoll/runtime/scope.hpp"
#include "atoll/runtime/semaphore.hpp"
#include "atoll/runtime/this_task.hpp"
#include "runtime/parts.hpp"

namespace {

using namespace std::chrono_literals;
using atl::test::with_workers;

class Exchange : public testing::TestWithParam<int> {
 protected:
  atl::Runtime runtime{with_workers(GetParam())};
};

TEST_P(Exchange, AChannelGivesEachItemOnceAndInOrder) {
  for (const std::size_t capacity : {1, 2, 100}) {
    constexpr int kProducers = 4, kItems = 500;
    atl::Channel<std::pair<int, int>> channel(capacity);
    std::vector<std::atomic<int>> popped(kProducers * kItems);
    std::atomic<int> wrong{0};
    const auto consume = [&] {
      std::vector<int> last(kProducers, -1);
      while (const auto item = channel.pop()) {
        ++popped[static_cast<std::size_t>(item->first * kItems + item->second)];
        int& before = last[static_cast<std::size_t>(item->first)];
        wrong += item->second > before ? 0 : 1;
        before = item->second;
      }
    };
    std::jthread thread(consume);
    runtime.run([&] {
      atl::Scope consumers, producers;
      for (int each = 0; each < 3; ++each) consumers.fork(consume);
      for (int each = 0; each < kProducers; ++each) {
        producers.fork([&, each] {
          for (int item = 0; item < kItems; ++item) channel.push(std::pair{each, item});
        });
      }
      producers.join();
      channel.close();
      consumers.join();
    });
    thread.join();
    EXPECT_EQ(wrong, 0);
    EXPECT_TRUE(std::ranges::all_of(popped, [](const auto& count) { return count == 1; }));
  }
}

TEST_P(Exchange, AnItemThatThrowsTakesNobodysTurn) {
  struct Item {
    bool breaks;
    explicit Item(bool breaks) : breaks(breaks) {}
    Item(const Item& other) : breaks(other.breaks) {
      if (breaks) throw std::out_of_range("copy");
    }
  };
  atl::Channel<Item> channel(1);
  runtime.run([&] {
    const Item whole(false);
    const Item broken(true);
    channel.push(whole);
    auto throws = atl::spawn([&] { channel.push(broken); });
    for (int turn = 0; turn < 20; ++turn) atl::yield();  // it waits first
    auto waits = atl::spawn([&] { channel.push(whole); });
    for (int turn = 0; turn < 20; ++turn) atl::yield();
    EXPECT_TRUE(channel.pop());
    EXPECT_TRUE(channel.pop());
    EXPECT_THROW(throws.join(), std::out_of_range);
    waits.join();
  });
}

TEST_P(Exchange, AFullChannelKeepsItsItemsAndAnEmptyOneGivesNone) {
  EXPECT_THROW(atl::Channel<int>(0), atl::RuntimeFault);
  atl::Channel<std::unique_ptr<int>> channel(1);
  std::stop_source stop;
  stop.request_stop();
  runtime.run([&] {
    EXPECT_EQ(channel.try_pop(), std::nullopt);
    EXPECT_EQ(channel.pop_for(1ms), std::nullopt);
    EXPECT_EQ(channel.pop(stop.get_token()), std::nullopt);
    EXPECT_TRUE(channel.push(std::make_unique<int>(1)));
    auto second = std::make_unique<int>(2);
    EXPECT_FALSE(channel.try_push(std::move(second)));
    EXPECT_FALSE(channel.push_for(std::move(second), 1ms));
    EXPECT_FALSE(channel.push(std::move(second), stop.get_token()));
    ASSERT_TRUE(second);  // was not moved from
    auto pusher = atl::spawn([&] { return channel.push(std::move(second)); });
    EXPECT_EQ(**channel.pop(), 1);
    EXPECT_TRUE(pusher.join());
    channel.close();
    EXPECT_FALSE(channel.push(nullptr));
    EXPECT_EQ(**channel.pop(), 2);  // what is left
    EXPECT_EQ(channel.pop(), std::nullopt);
  });
}

TEST_P(Exchange, ClosingAChannelEndsAllWaits) {
  atl::Channel<int> empty(1), full(1);
  full.push(0);
  std::vector<atl::Task<bool>> tasks;
  for (int each = 0; each < 5; ++each) {
    tasks.push_back(runtime.spawn([&] { return empty.pop().has_value(); }));
    tasks.push_back(runtime.spawn([&] { return full.push(1); }));
  }
  empty.close();
  full.close();
  for (auto& task : tasks) EXPECT_FALSE(task.join());
}

TEST_P(Exchange, ASemaphoreLetsNoMoreInThanItHasPermits) {
  atl::Semaphore semaphore(3);
  std::atomic<int> inside{0}, most{0};
  const auto enter = [&] {
    for (int turn = 0; turn < 200; ++turn) {
      semaphore.acquire();
      const int now = ++inside;
      for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);) {
      }
      if (turn % 3 == 0) atl::yield();
      --inside;
      semaphore.release();
    }
  };
  std::jthread thread(enter);
  runtime.run([&] {
    atl::Scope scope;
    for (int each = 0; each < 8; ++each) scope.fork(enter);
    scope.join();
  });
  thread.join();
  EXPECT_LE(most, 3);
  EXPECT_TRUE(semaphore.try_acquire());
}

TEST_P(Exchange, ASemaphoreHasDeadlinesAndStops) {
  EXPECT_THROW(atl::Semaphore(-1), atl::RuntimeFault);
  atl::Semaphore semaphore(0);
  EXPECT_THROW(semaphore.release(0), atl::RuntimeFault);
  runtime.run([&] {
    EXPECT_FALSE(semaphore.try_acquire());
    EXPECT_FALSE(semaphore.acquire_for(1ms));
    EXPECT_FALSE(semaphore.acquire_until(std::chrono::steady_clock::now()));
    std::stop_source stop;
    auto waits = atl::spawn([&] { return semaphore.acquire(stop.get_token()); });
    stop.request_stop();
    EXPECT_FALSE(waits.join());
    std::vector<atl::Task<>> tasks;
    for (int each = 0; each < 4; ++each) tasks.push_back(atl::spawn([&] { semaphore.acquire(); }));
    semaphore.release(3);
    semaphore.release();
    for (auto& task : tasks) task.join();
  });
}

INSTANTIATE_TEST_SUITE_P(Workers, Exchange, testing::Values(1, 2, 8),
                         [](const auto& info) { return std::to_string(info.param); });

}  // namespace
