// Idle workers sleep, and no wake-up is lost, with either kind of fences.

#include "scheduler/parking.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <numeric>
#include <span>
#include <thread>
#include <vector>

#include "atoll/runtime/deque.hpp"
#include "fences.hpp"
#include "runtime/parts.hpp"

namespace {

using atl::detail::Deque;
using atl::runtime::Parking;
using std::chrono::steady_clock;

// As a worker after publishing work that every worker may run: detail::published and what it calls.
// Returns whom it has woken.
int notify(Parking& parking, std::span<const int> nearest_first) {
  atl::detail::light_fence();
  Parking::Wave wave(parking);
  const std::uint64_t idlers = parking.word().load(std::memory_order_relaxed);
  return wave.needs_sleeper(idlers) ? parking.wake_one(nearest_first, wave) : Parking::kNobody;
}

class ParkingTest : public atl::test::WithFences {
 protected:
  static void go_to_sleep(Parking& parking, int worker) {
    parking.start_search(worker);
    parking.prepare(worker);
  }
};

TEST_P(ParkingTest, CountsWhoSearchesAndWhoSleeps) {
  Parking parking(2);
  parking.start_search(0);
  parking.start_search(1);
  EXPECT_EQ(parking.searchers(), 2);
  parking.prepare(1);
  EXPECT_EQ(parking.searchers(), 1);
  EXPECT_EQ(parking.sleepers(), 1);
  parking.cancel(1);
  EXPECT_EQ(parking.searchers(), 2);
  EXPECT_EQ(parking.sleepers(), 0);
  parking.end_search(0, {});
  parking.end_search(1, {});
  EXPECT_EQ(parking.searchers(), 0);
}

TEST_P(ParkingTest, WakesOneTheNearest) {
  Parking parking(3);
  for (int worker = 0; worker < 3; ++worker) go_to_sleep(parking, worker);
  ASSERT_EQ(notify(parking, std::array{2, 0, 1}), 2);
  EXPECT_EQ(parking.sleepers(), 2);
  EXPECT_EQ(parking.searchers(), 1);
  parking.commit(2);  // returns
  parking.cancel(0);
  parking.cancel(1);
  EXPECT_EQ(parking.searchers(), 3);
}

TEST_P(ParkingTest, WakesNobodyWhileSomebodySearchesAndTheLastSearcherWakesAnother) {
  Parking parking(3);
  constexpr std::array kOrder{0, 1, 2};
  go_to_sleep(parking, 0);
  parking.start_search(1);
  parking.start_search(2);
  EXPECT_EQ(notify(parking, kOrder), Parking::kNobody);
  EXPECT_EQ(parking.end_search(1, kOrder), Parking::kNobody) << "it was not the last";
  ASSERT_EQ(parking.end_search(2, kOrder), 0);
  EXPECT_EQ(parking.sleepers(), 0);
  parking.commit(0);
  EXPECT_EQ(parking.searchers(), 1);
}

TEST_P(ParkingTest, TheWordOfAllChangesOnlyWithAChipletsFirstAndLast) {
  Parking parking(4, 2);
  const auto chiplet = [](int worker) { return worker / 2; };
  constexpr std::array kOrder{0, 1, 2, 3};
  parking.start_search(0, chiplet(0));
  const std::uint64_t one_searches = parking.word().load();
  parking.start_search(1, chiplet(1));
  EXPECT_EQ(parking.word().load(), one_searches);
  parking.end_search(0, kOrder);
  EXPECT_EQ(parking.word().load(), one_searches);
  parking.prepare(1);
  const std::uint64_t one_sleeps = parking.word().load();
  EXPECT_TRUE(atl::detail::wants_wake(one_sleeps));
  parking.start_search(2, chiplet(2));
  EXPECT_FALSE(atl::detail::wants_wake(parking.word().load()));
  parking.start_search(3, chiplet(3));
  parking.prepare(2);
  EXPECT_FALSE(atl::detail::wants_wake(parking.word().load())) << "another searches there";
  parking.prepare(3);
  EXPECT_TRUE(atl::detail::wants_wake(parking.word().load()));
  EXPECT_EQ(parking.wake_one(std::array{3, 2, 1}), 3);
  EXPECT_EQ(parking.end_search(3, std::array{2, 0, 1}), 2);
  EXPECT_EQ(parking.end_search(2, std::array{3, 0, 1}), 1);
  EXPECT_EQ(parking.end_search(1, kOrder), Parking::kNobody);
  EXPECT_EQ(parking.word().load(), 0U);
}

TEST_P(ParkingTest, RestrictedWorkWakesWhoMayRunItWhoeverSearches) {
  Parking parking(4);
  constexpr std::array kOrder{0, 1, 2, 3};
  for (int worker = 0; worker < 3; ++worker) go_to_sleep(parking, worker);
  parking.start_search(3);
  const auto allowed = [](int worker) { return worker == 1 || worker == 3; };
  ASSERT_EQ(parking.notify_allowed(kOrder, allowed), 1);
  EXPECT_EQ(parking.notify_allowed(kOrder, allowed), Parking::kNobody);
  EXPECT_EQ(parking.sleepers(), 2);
  parking.commit(1);
  parking.cancel(0);
  {
    Parking::Wave wave(parking);
    parking.notify_worker(2, wave);
    ASSERT_EQ(parking.sleepers(), 0);
    EXPECT_EQ(parking.futex_wakes(), 1U) << "the first one's";
  }
  parking.commit(2);
}

// Each piece of work for one of them begins its look where the last one ended.
TEST_P(ParkingTest, AWaveThatWakesAllPassesOverEachWorkerOnce) {
  constexpr int kWorkers = 200;
  std::vector<int> order(kWorkers);
  std::iota(order.begin(), order.end(), 0);
  for (const bool in_a_list : {true, false}) {
    Parking parking(kWorkers);
    for (const int worker : order) go_to_sleep(parking, worker);
    int looks = 0;
    const auto allowed = [&](int) {
      ++looks;
      return true;
    };
    {
      Parking::Wave wave(parking);
      for (int piece = 0; piece < kWorkers; ++piece) {
        if (in_a_list) {
          parking.notify_allowed(order, allowed, wave);
        } else {
          parking.notify_near(0, allowed, wave);
        }
      }
    }
    EXPECT_EQ(parking.sleepers(), 0);
    EXPECT_EQ(looks, kWorkers);
    for (const int worker : order) parking.commit(worker);  // returns
  }
}

TEST_P(ParkingTest, AWaveFindsWhoFallsAsleepBehindItsLook) {
  constexpr std::array kOrder{0, 1, 2};
  const auto all = [](int) { return true; };
  for (const bool in_a_list : {true, false}) {
    Parking parking(3);
    go_to_sleep(parking, 1);
    go_to_sleep(parking, 2);
    {
      Parking::Wave wave(parking);
      const auto wake = [&] {
        if (in_a_list) {
          parking.notify_allowed(kOrder, all, wave);
        } else {
          parking.notify_near(0, all, wave);
        }
        return parking.sleepers();
      };
      EXPECT_EQ(wake(), 1);
      go_to_sleep(parking, 0);
      EXPECT_EQ(wake(), 1);
      EXPECT_EQ(wake(), 0);
      EXPECT_EQ(wake(), 0);
    }
    for (const int worker : kOrder) parking.commit(worker);
  }
}

TEST_P(ParkingTest, CancelUsesUpANotification) {
  Parking parking(1);
  go_to_sleep(parking, 0);
  EXPECT_EQ(notify(parking, std::array{0}), 0);
  parking.cancel(0);
  EXPECT_EQ(parking.searchers(), 1);
  parking.prepare(0);
  ASSERT_EQ(notify(parking, std::array{0}), 0) << "it sleeps again";
  parking.commit(0);
}

TEST_P(ParkingTest, NotifyAllWakesAll) {
  constexpr int kWorkers = 4;
  Parking parking(kWorkers);
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int worker = 0; worker < kWorkers; ++worker) {
    threads.emplace_back([&, worker] {
      parking.start_search(worker);
      while (!stop.load(std::memory_order_relaxed)) {
        parking.prepare(worker);
        if (stop.load(std::memory_order_relaxed)) {
          parking.cancel(worker);
        } else {
          parking.commit(worker);
        }
      }
      parking.end_search(worker, {});
    });
  }
  stop.store(true, std::memory_order_relaxed);
  parking.notify_all();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(parking.searchers(), 0);
  EXPECT_EQ(parking.sleepers(), 0);
}

// notify_all wakes one itself. The depth of a worker is 1 more than that of whoever wakes it.
TEST_P(ParkingTest, WakingAllTakesLogarithmicallyManySteps) {
  constexpr int kWorkers = 64;
  Parking parking(kWorkers, 4);
  for (int worker = 0; worker < kWorkers; ++worker) {
    parking.start_search(worker, worker % 4);
    parking.prepare(worker);
  }
  const std::uint64_t before = parking.futex_wakes();
  parking.notify_all();
  EXPECT_EQ(parking.futex_wakes() - before, 1U);
  ASSERT_EQ(parking.sleepers(), 0);
  // The worker whose turn it is, and how often it wakes others.
  std::uint64_t most = 0;
  for (int worker = 0; worker < kWorkers; ++worker) {
    const std::uint64_t others = parking.futex_wakes();
    parking.commit(worker);
    most = std::max(most, parking.futex_wakes() - others);
  }
  EXPECT_EQ(most, 2U);
  EXPECT_EQ(parking.futex_wakes() - before, static_cast<std::uint64_t>(kWorkers));
  EXPECT_EQ(parking.searchers(), kWorkers);
}

int barriers_run = 0;

TEST(CombinedBarrier, OneServesAllWhoAskedBefore) {
  constexpr int kAsking = 127;
  barriers_run = 0;
  atl::runtime::CombinedBarrier barrier([] { ++barriers_run; });
  std::array<atl::runtime::CombinedBarrier::Ticket, kAsking> tickets{};
  for (auto& ticket : tickets) ticket = barrier.ask();
  for (const auto ticket : tickets) barrier.await(ticket);
  EXPECT_EQ(barriers_run, 1);
  barrier.await(barrier.ask());
  EXPECT_EQ(barriers_run, 2);
}

// One that has begun already may have passed this thread's CPU.
TEST(CombinedBarrier, OneThatHasBegunServesNobodyWhoAsksLater) {
  static atl::runtime::CombinedBarrier* running = nullptr;
  static atl::runtime::CombinedBarrier::Ticket late = 0;
  barriers_run = 0;
  atl::runtime::CombinedBarrier barrier([] {
    if (++barriers_run == 1) late = running->ask();
  });
  running = &barrier;
  barrier.await(barrier.ask());
  EXPECT_EQ(barriers_run, 1);
  barrier.await(late);
  EXPECT_EQ(barriers_run, 2);
}

TEST(CombinedBarrier, NobodyWaitsForEver) {
  static std::atomic<int> runs{0};
  runs = 0;
  atl::runtime::CombinedBarrier barrier([] { ++runs; });
  constexpr int kThreads = 8;
  constexpr int kTimes = 2000;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&] {
      for (int times = 0; times < kTimes; ++times) barrier.await(barrier.ask());
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(runs.load(), kThreads * kTimes);
}

// Workers that go to sleep at once, and producers that wait until what they published is taken: a
// lost wake-up leaves it there, and the producer's patience tells.
class PingPong {
 public:
  static constexpr int kWorkers = 2;
  static constexpr int kChiplets = 2;
  static constexpr int kProducers = 2;
  static constexpr int kRounds = 1500;

  void run() {
    std::vector<std::thread> threads;
    for (int worker = 0; worker < kWorkers; ++worker) {
      threads.emplace_back([this, worker] { work(worker); });
    }
    std::vector<std::thread> producers;
    for (int number = 0; number < kProducers; ++number) {
      producers.emplace_back(
          [this, number] { produce(deques_[static_cast<std::size_t>(number)]); });
    }
    for (std::thread& producer : producers) producer.join();
    stop_.store(true, std::memory_order_relaxed);
    parking_.notify_all();
    for (std::thread& thread : threads) thread.join();
    EXPECT_FALSE(lost_.load()) << "a worker slept while work lay there";
    EXPECT_EQ(taken_.load(), kProducers * kRounds);
  }

 private:
  static constexpr std::array kOrder{0, 1};
  static constexpr auto kAny = [](Deque::Word) { return true; };

  void produce(Deque& deque) {
    for (Deque::Word round = 1; round <= kRounds; ++round) {
      deque.push(round);
      notify(parking_, kOrder);
      const auto patience = steady_clock::now() + std::chrono::seconds(60);
      while (!deque.looks_empty() && !lost_.load()) {
        if (steady_clock::now() > patience) lost_.store(true);
        std::this_thread::yield();
      }
    }
  }

  bool anything() const {
    for (const Deque& deque : deques_) {
      if (!deque.looks_empty()) return true;
    }
    return stop_.load(std::memory_order_relaxed);
  }

  bool take_one() {
    for (Deque& deque : deques_) {
      Deque::Word word;
      Deque::Stolen stolen = deque.steal({&word, 1}, kAny);
      if (stolen.outcome == Deque::Steal::hidden) {
        deque.force();
        stolen = deque.steal({&word, 1}, kAny);
      }
      if (stolen.count == 0) continue;
      taken_.fetch_add(1);
      return true;
    }
    return false;
  }

  bool over() const { return stop_.load(std::memory_order_relaxed) || lost_.load(); }

  void work(int worker) {
    while (!over()) {
      parking_.start_search(worker, worker % kChiplets);
      while (!take_one() && !over()) {
        parking_.prepare(worker);
        if (anything()) {
          parking_.cancel(worker);
        } else {
          parking_.commit(worker);
        }
      }
      parking_.end_search(worker, kOrder);
    }
  }

  Parking parking_{kWorkers, kChiplets};
  std::array<Deque, kProducers> deques_;
  std::atomic<bool> stop_{false};
  std::atomic<bool> lost_{false};
  std::atomic<int> taken_{0};
};

TEST_P(ParkingTest, NoWakeUpIsLost) { PingPong().run(); }

TEST_P(ParkingTest, AChildOfForkMayStillUseTheHeavyFence) {
  // Aborts if the kernel has forgotten the registration.
  const auto fence = [] {
    atl::runtime::heavy_fence();
    return 0;
  };
  EXPECT_EQ(atl::test::in_a_child(fence), 0);
}

INSTANTIATE_TEST_SUITE_P(Fences, ParkingTest, ::testing::Bool(), atl::test::fences_name);

}  // namespace
