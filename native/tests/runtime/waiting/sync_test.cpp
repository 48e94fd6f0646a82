// Event, latch, barrier, mutex and condition variable: from tasks, from threads that are not
// workers, and across both; with stop tokens. Lifetimes: sync_lifetime_test.cpp.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <deque>
#include <mutex>
#include <stop_token>
#include <thread>
#include <vector>

#include "atoll/runtime/all_do.hpp"
#include "atoll/runtime/barrier.hpp"
#include "atoll/runtime/condition_variable.hpp"
#include "atoll/runtime/event.hpp"
#include "atoll/runtime/latch.hpp"
#include "atoll/runtime/mutex.hpp"
#include "atoll/runtime/runtime.hpp"
#include "atoll/runtime/scope.hpp"
#include "atoll/runtime/this_task.hpp"
#include "runtime/parts.hpp"

namespace {

using namespace std::chrono_literals;
using atl::test::with_workers;

class Sync : public testing::TestWithParam<int> {
 protected:
  // Half of `count` calls in tasks, half on threads of their own; returns when all have returned.
  template <class F>
  void on_tasks_and_threads(int count, F&& function) {
    std::vector<atl::Task<>> tasks;
    std::vector<std::jthread> threads;
    for (int each = 0; each < count; ++each) {
      if (each % 2 == 0) {
        tasks.push_back(runtime.spawn([&function, each] { function(each); }));
      } else {
        threads.emplace_back([&function, each] { function(each); });
      }
    }
    for (atl::Task<>& task : tasks) task.join();
  }

  atl::Runtime runtime{with_workers(GetParam())};
};

TEST_P(Sync, AnEventLetsGoAllWhoWaitAndSeeWhatWasWritten) {
  for (int round = 0; round < 20; ++round) {
    atl::Event event;
    int value = 0;
    std::atomic<int> right = 0;
    on_tasks_and_threads(7, [&](int each) {
      if (each == 3) {
        value = 42;
        event.set();
      } else {
        event.wait();
        right += value == 42 ? 1 : 0;
      }
    });
    EXPECT_EQ(right, 6);
  }
}

TEST_P(Sync, AnEventThatIsResetAtOnceHasStillLetGoWhoWaited) {
  atl::Event event;
  std::atomic<int> waiting = 0;
  std::atomic<int> through = 0;
  std::vector<atl::Task<>> tasks;
  for (int each = 0; each < 5; ++each) {
    tasks.push_back(runtime.spawn([&] {
      ++waiting;
      event.wait();
      ++through;
    }));
  }
  while (waiting != 5) std::this_thread::yield();
  // Between the count and the wait there is a gap, so pulses go on until all are through.
  while (through != 5) {
    event.set();
    event.reset();
    std::this_thread::yield();
  }
  EXPECT_FALSE(event.is_set());
}

TEST_P(Sync, AStopEndsTheWaitForAnEvent) {
  atl::Event never;
  on_tasks_and_threads(4, [&](int) {
    std::stop_source source;
    EXPECT_FALSE(never.wait_for(1ms, source.get_token()));
    std::jthread stopper([&] { source.request_stop(); });
    EXPECT_FALSE(never.wait(source.get_token()));
    EXPECT_FALSE(never.wait(source.get_token()));  // asked before
  });
  never.set();
  std::stop_source source;
  source.request_stop();
  EXPECT_TRUE(never.wait(source.get_token()));  // it has happened, whoever asks to stop
}

TEST_P(Sync, StopsAndSetsAtTheSameTimeWakeEachOnce) {
  for (int round = 0; round < 200; ++round) {
    atl::Event event;
    std::stop_source source;
    std::atomic<int> out = 0;
    std::vector<atl::Task<>> tasks;
    for (int each = 0; each < 4; ++each) {
      tasks.push_back(runtime.spawn([&] {
        event.wait_for(1h, source.get_token());
        ++out;
      }));
    }
    std::jthread stopper([&] { source.request_stop(); });
    event.set();
    for (atl::Task<>& task : tasks) task.join();
    EXPECT_EQ(out, 4);
  }
}

TEST_P(Sync, ATaskHandleStopsAWaitThroughTheTasksOwnToken) {
  atl::Event never;
  std::atomic<bool> stopped = false;
  {
    auto task = runtime.spawn([&] { stopped = !never.wait(atl::this_task::stop_token()); });
  }
  EXPECT_TRUE(stopped);
}

TEST_P(Sync, ALatchWaitsForAll) {
  for (int round = 0; round < 20; ++round) {
    atl::Latch latch(6);
    std::array<int, 6> written{};
    std::atomic<int> sums = 0;
    on_tasks_and_threads(6, [&](int each) {
      written[static_cast<std::size_t>(each)] = 1;
      if (each < 2) {
        latch.count_down();
        return;
      }
      latch.arrive_and_wait();
      int sum = 0;
      for (const int one : written) sum += one;
      sums += sum;
    });
    EXPECT_TRUE(latch.try_wait());
    EXPECT_EQ(sums, 4 * 6);
  }
}

TEST(Latch, KnowsItsBounds) {
  atl::Latch none(0);
  none.wait();
  EXPECT_THROW(none.count_down(), atl::RuntimeFault);
  EXPECT_THROW(atl::Latch(-1), atl::RuntimeFault);
  atl::Latch two(2);
  two.count_down(2);
  EXPECT_TRUE(two.try_wait());
  atl::Latch open(1);
  EXPECT_FALSE(open.try_wait());
  std::stop_source source;
  source.request_stop();
  EXPECT_FALSE(open.wait(source.get_token()));
}

TEST_P(Sync, NobodyIsPastABarrierThatAnotherHasNotReached) {
  // 3: flat. 40: with leaves. More parties than workers, too.
  for (const int parties : {1, 2, 3, 40}) {
    const int phases = parties == 40 ? 30 : 200;
    int completed = 0;  // by the completion alone, between the phases
    atl::Barrier barrier(parties, [&] { ++completed; });
    std::vector<std::atomic<int>> reached(static_cast<std::size_t>(parties));
    std::atomic<int> wrong = 0;
    on_tasks_and_threads(parties, [&](int me) {
      for (int phase = 1; phase <= phases; ++phase) {
        reached[static_cast<std::size_t>(me)].store(phase, std::memory_order_relaxed);
        barrier.arrive_and_wait();
        wrong += completed == phase ? 0 : 1;
        for (const auto& other : reached) {
          wrong += other.load(std::memory_order_relaxed) >= phase ? 0 : 1;
        }
        barrier.arrive_and_wait();
        if (me == 0) --completed;  // the second one counted as well
        barrier.arrive_and_wait();
        if (me == 0) --completed;
        barrier.arrive_and_wait();
        if (me == 0) --completed;
      }
    });
    EXPECT_EQ(wrong, 0) << parties;
  }
}

TEST_P(Sync, ABarrierOfTasksAloneHasOnePartyPerWorker) {
  const int parties = GetParam();
  atl::Barrier barrier(parties);
  std::atomic<int> arrived = 0;
  std::atomic<int> wrong = 0;
  std::vector<atl::Task<>> tasks;
  for (int rank = 0; rank < parties; ++rank) {
    tasks.push_back(runtime.spawn(atl::on_worker(rank), [&] {
      for (int phase = 1; phase <= 500; ++phase) {
        ++arrived;
        barrier.arrive_and_wait();
        wrong += arrived >= phase * parties ? 0 : 1;
      }
    }));
  }
  for (atl::Task<>& task : tasks) task.join();
  EXPECT_EQ(wrong, 0);
}

// Up to 16 parties it is flat; 17 have 3 leaves, 64 and 65 have 8 and 9.
TEST_P(Sync, MoreThanItsPartiesPassABarrierByTurns) {
  for (const int parties : {1, 2, 3, 16, 17, 64, 65}) {
    const int phases = parties < 16 ? 100 : 30;
    std::atomic<int> turns = phases * parties;
    int completed = 0;
    atl::Barrier barrier(parties, [&] { ++completed; });
    std::atomic<int> arrived = 0;
    std::atomic<int> through = 0;
    std::atomic<int> wrong = 0;
    const auto pass = [&] {
      for (int turn; (turn = --turns) >= 0;) {
        ++arrived;
        barrier.arrive_and_wait();
        const int now = ++through;
        wrong += arrived / parties * parties >= now ? 0 : 1;
        if (turn % 3 == 0) atl::yield();
      }
    };
    runtime.run([&] {
      atl::Scope scope;
      for (int task = 0; task < 2 * parties + 1; ++task) scope.fork(pass);
      scope.join();
    });
    EXPECT_EQ(wrong, 0) << parties;
    EXPECT_EQ(completed, phases) << parties;
  }
}

TEST(Barrier, NeedsAParty) {
  EXPECT_THROW(atl::Barrier(0), atl::RuntimeFault);
  EXPECT_THROW(atl::Barrier(1 << 30), atl::RuntimeFault);
}

// More workers than CPUs, on chiplets of unlike sizes, each with one party that stays there.
TEST(Barrier, HasAPartyOnEachOfManyWorkers) {
  for (const char* machine : {"chiplet:13 core:5", "core:17"}) {
    atl::RuntimeOptions options;
    options.places = atl::synthetic_places(machine, atl::test::real_cpus());
    options.approach = "static-local";
    atl::Runtime many(options);
    const int parties = many.workers();
    atl::Barrier barrier(parties);
    std::atomic<int> arrived = 0;
    std::atomic<int> wrong = 0;
    many.run([&] {
      atl::all_do([&](int) {
        for (int phase = 1; phase <= 5; ++phase) {
          ++arrived;
          barrier.arrive_and_wait();
          wrong += arrived >= phase * parties ? 0 : 1;
        }
      });
    });
    EXPECT_EQ(wrong, 0) << machine;
  }
}

TEST_P(Sync, AMutexLetsOneInAtATime) {
  atl::Mutex mutex;
  long count = 0;
  on_tasks_and_threads(6, [&](int each) {
    for (int i = 0; i < 500; ++i) {
      if (i % 5 == 0) {
        while (!mutex.try_lock()) atl::yield();
        ++count;
        mutex.unlock();
      } else {
        const std::lock_guard lock(mutex);
        const long before = count;
        // The holder is suspended, and may go on on another worker.
        if (i % 50 == each) atl::yield();
        count = before + 1;
      }
    }
  });
  EXPECT_EQ(count, 6 * 500);
}

TEST_P(Sync, AnUnlockOfAMutexThatIsNotLockedIsAFault) {
  atl::Mutex mutex;
  EXPECT_THROW(mutex.unlock(), atl::RuntimeFault);
  runtime.run([&] {
    mutex.lock();
    mutex.unlock();
    EXPECT_THROW(mutex.unlock(), atl::RuntimeFault);
    mutex.lock();  // still as before
    auto waits = atl::spawn([&] { const std::lock_guard lock(mutex); });
    atl::yield();
    mutex.unlock();
    waits.join();
    EXPECT_THROW(mutex.unlock(), atl::RuntimeFault);
  });
}

TEST_P(Sync, AWaiterIsHandedTheMutexAtLast) {
  // One task takes it again and again and gives others the chance to run only while it holds it:
  // without hand-off they would always find it taken.
  atl::Mutex mutex;
  std::atomic<bool> had = false;
  auto greedy = runtime.spawn([&] {
    mutex.lock();
    while (!had) {
      atl::yield();
      mutex.unlock();
      mutex.lock();
    }
    mutex.unlock();
  });
  auto patient = runtime.spawn([&] {
    const std::lock_guard lock(mutex);
    had = true;
  });
  patient.join();
  greedy.join();
  EXPECT_TRUE(had);
}

TEST_P(Sync, AConditionVariableHandsOnWhatAQueueHolds) {
  atl::Mutex mutex;
  atl::ConditionVariable filled;
  std::deque<int> queue;
  long taken = 0;
  constexpr int kItems = 300;
  on_tasks_and_threads(6, [&](int each) {
    for (int i = 0; i < kItems; ++i) {
      std::unique_lock lock(mutex);
      if (each < 3) {
        queue.push_back(i);
        if (i % 2 == 0) {
          filled.notify_one();
        } else {
          filled.notify_all();
        }
      } else {
        filled.wait(lock, [&] { return !queue.empty(); });
        taken += queue.front();
        queue.pop_front();
      }
    }
  });
  EXPECT_EQ(taken, 3L * kItems * (kItems - 1) / 2);
}

TEST_P(Sync, AConditionVariableStopsWaitingWhenAskedOrLate) {
  atl::Mutex mutex;
  atl::ConditionVariable never;
  on_tasks_and_threads(4, [&](int) {
    std::stop_source source;
    std::unique_lock lock(mutex);
    EXPECT_FALSE(never.wait_for(lock, 1ms, [] { return false; }));
    std::jthread stopper([&] { source.request_stop(); });
    EXPECT_FALSE(never.wait(lock, source.get_token(), [] { return false; }));
    EXPECT_TRUE(lock.owns_lock());
    EXPECT_TRUE(never.wait_until(lock, std::chrono::system_clock::now(), [] { return true; }));
  });
}

INSTANTIATE_TEST_SUITE_P(Workers, Sync, testing::Values(1, 2, 8),
                         [](const auto& info) { return std::to_string(info.param); });

}  // namespace
