// An object may be destroyed as soon as the wait for it is over, even if the call that ended the
// wait, or the one that began it, has not returned (AddressSanitizer finds uses after that,
// ThreadSanitizer those of a live stack); an exception of a barrier's completion ends the program.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <stop_token>
#include <thread>
#include <vector>

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

using atl::test::with_workers;

static_assert(sizeof(atl::Event) == 8);
static_assert(sizeof(atl::Mutex) == 4);
static_assert(sizeof(atl::ConditionVariable) == 4);

// Writes where the frames of the calls before it lay.
[[gnu::noinline]] void overwrite_the_stack_below() {
  volatile char below[1024];
  for (volatile char& byte : below) byte = 1;
}

class SyncLifetime : public testing::TestWithParam<int> {
 protected:
  // By turns in a task and on this thread, which is no worker.
  template <class F>
  void here_or_in_a_task(int round, F&& function) {
    if (round % 2 == 0) {
      function();
    } else {
      runtime.run(function);
    }
  }

  atl::Runtime runtime{with_workers(GetParam())};
};

TEST_P(SyncLifetime, AnEventMayGoAsSoonAsTheWaitIsOver) {
  for (int round = 0; round < 500; ++round) {
    auto event = std::make_unique<atl::Event>();
    auto setter = runtime.spawn([raw = event.get()] { raw->set(); });
    here_or_in_a_task(round, [&] { event->wait(); });
    event.reset();
    setter.join();
  }
}

TEST_P(SyncLifetime, ALatchMayGoAsSoonAsTheWaitIsOver) {
  for (int round = 0; round < 500; ++round) {
    auto latch = std::make_unique<atl::Latch>(2);
    auto one = runtime.spawn([raw = latch.get()] { raw->count_down(); });
    auto other = runtime.spawn([raw = latch.get()] { raw->count_down(); });
    here_or_in_a_task(round, [&] { latch->wait(); });
    latch.reset();
    one.join();
    other.join();
  }
}

TEST_P(SyncLifetime, ABarrierMayGoAsSoonAsTheWaitIsOver) {
  // With few parties it is flat, with many it has leaves.
  for (const int parties : {2, 40}) {
    for (int round = 0; round < (parties == 2 ? 300 : 20); ++round) {
      auto barrier = std::make_shared<atl::Barrier>(parties);
      std::vector<atl::Task<>> tasks;
      for (int party = 1; party < parties; ++party) {
        // Whoever comes out last frees it.
        tasks.push_back(runtime.spawn([barrier]() mutable {
          barrier->arrive_and_wait();
          barrier.reset();
        }));
      }
      barrier->arrive_and_wait();
      barrier.reset();
      for (atl::Task<>& task : tasks) task.join();
    }
  }
}

TEST_P(SyncLifetime, WhoLockedAMutexLastMayDestroyIt) {
  for (int round = 0; round < 500; ++round) {
    auto mutex = std::make_unique<atl::Mutex>();
    std::atomic<atl::Mutex*> shared = mutex.get();
    mutex->lock();
    auto last = runtime.spawn([&] {
      mutex->lock();
      mutex->unlock();
      mutex.reset();
    });
    // The other waits, mostly, so that this wakes it and then returns.
    here_or_in_a_task(round, [&] { shared.load()->unlock(); });
    last.join();
  }
}

TEST_P(SyncLifetime, AConditionVariableMayGoOnceEveryWaitHasReturned) {
  for (int round = 0; round < 500; ++round) {
    auto changed = std::make_unique<atl::ConditionVariable>();
    atl::ConditionVariable* const shared = changed.get();
    atl::Mutex mutex;
    bool waits = false;
    auto waiter = runtime.spawn([&] {
      {
        std::unique_lock lock(mutex);
        waits = true;
        changed->wait(lock);  // ends by the notification, or this test could not know that it came
      }
      changed.reset();
    });
    for (bool does = false; !does; std::this_thread::yield()) {
      const std::lock_guard lock(mutex);
      does = waits;
    }
    here_or_in_a_task(round, [&] { shared->notify_all(); });
    waiter.join();
  }
}

TEST_P(SyncLifetime, WhoJoinsAScopeMayGoOnAsSoonAsItsLastChildIsDone) {
  runtime.run([] {
    for (int round = 0; round < 2000; ++round) {
      std::atomic<int> begun{0};
      atl::Scope scope;
      for (int child = 0; child < 2; ++child) {
        scope.fork([&begun, round] {
          ++begun;
          for (int turn = 0; turn < round % 4; ++turn) atl::yield();
        });
      }
      if (round % 2 == 0) atl::yield();  // another worker may take them
      scope.join();
      overwrite_the_stack_below();
      ASSERT_EQ(begun, 2);
    }
  });
}

TEST_P(SyncLifetime, PartiesOfABarrierNeedNotBeTheSameEachTime) {
  atl::Barrier barrier(3);
  std::atomic<int> through{0};
  const auto arrive = [&] {
    barrier.arrive_and_wait();
    ++through;
  };
  for (int phase = 1; phase <= 100; ++phase) {
    auto one = runtime.spawn(arrive);
    auto two = runtime.spawn(arrive);
    here_or_in_a_task(phase, arrive);
    one.join();
    two.join();
    EXPECT_EQ(through, 3 * phase);
  }
}

TEST(Barrier, AnExceptionOfItsCompletionEndsTheProgram) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto complete = [] {
    atl::Barrier barrier(1, [] { throw std::runtime_error("completion"); });
    try {
      barrier.arrive_and_wait();
    } catch (...) {
      std::_Exit(0);  // it came out
    }
  };
  EXPECT_EXIT(complete(), testing::KilledBySignal(SIGABRT), "");
}

TEST_P(SyncLifetime, PlainAndLimitedWaitsEndWithSetsThatAreResetAtOnce) {
  atl::Event event;
  std::atomic<int> waiting{30};
  runtime.run([&] {
    atl::Scope scope;
    for (int id = 0; id < 30; ++id) {
      scope.fork([&, id] {
        std::stop_source source;
        for (int round = 0; round < 20; ++round) {
          switch (id % 3) {
            case 0: event.wait(); break;
            case 1: event.wait(source.get_token()); break;
            default: event.wait_for(std::chrono::microseconds(round));
          }
          atl::yield();
        }
        --waiting;
      });
    }
    while (waiting > 0) {
      event.set();
      event.reset();
      atl::yield();
    }
  });
  EXPECT_FALSE(event.is_set());
}

INSTANTIATE_TEST_SUITE_P(Workers, SyncLifetime, testing::Values(1, 2, 8),
                         [](const auto& info) { return std::to_string(info.param); });

}  // namespace
