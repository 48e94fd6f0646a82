// What forks, tasks, yields and runs cost, in system calls and locked instructions (counting.hpp).
#include <optional>

#include "counting.hpp"

#if defined(ATL_TEST_COUNTS)

namespace {

using atl::test::Calls;
using atl::test::fib;
using atl::test::locked_instructions_of;
using atl::test::system_calls_of;

class Counts : public atl::test::WithWorkers {
 protected:
  // Calls it in a task of worker 0, while every other worker is in a task of its own.
  template <class Call>
  static void beside_busy_workers(Call&& call) {
    atl::Runtime runtime(options());
    std::atomic<int> inside{0};
    std::atomic<bool> over{false};
    std::vector<atl::Task<>> others;
    for (int rank = 1; rank < runtime.workers(); ++rank) {
      others.push_back(runtime.spawn(atl::on_worker(rank), [&] {
        ++inside;
        while (!over) std::this_thread::yield();
      }));
    }
    while (inside < runtime.workers() - 1) std::this_thread::yield();
    std::atomic<bool> alone{false};
    auto done = runtime.spawn(atl::on_worker(0), [&] {
      while (!alone) std::this_thread::yield();
      call();
      over = true;
    });
    // From here to the end of the call this thread makes no call of its own that would count: it
    // has woken the worker, and does not sleep until it joins.
    alone = true;
    while (!over) std::this_thread::yield();
    done.join();
    for (auto& other : others) other.join();
  }
};

TEST_P(Counts, ForksScopesTasksAndYieldsCallNoKernel) {
  beside_busy_workers([] {
    const auto expect_none = [](const char* what, auto&& call) {
      call();  // its first stacks and memory
      const Calls calls = system_calls_of(call);
      EXPECT_EQ(calls.futex, 0) << what;
      EXPECT_EQ(calls.membarrier, 0) << what;
    };
    expect_none("fork", [] { EXPECT_EQ(fib(15), 610); });
    expect_none("scope", [] {
      atl::Scope scope;
      for (int i = 0; i < 100; ++i) scope.fork([] {});
      scope.join();
    });
    expect_none("spawn", [] {
      std::vector<atl::Task<>> tasks;
      for (int i = 0; i < 100; ++i) tasks.push_back(atl::spawn([] {}));
      for (auto& task : tasks) task.join();
    });
    expect_none("yield", [] {
      auto other = atl::spawn([] {
        for (int i = 0; i < 100; ++i) atl::yield();
      });
      for (int i = 0; i < 100; ++i) atl::yield();
      other.join();
    });
    expect_none("event", [] {
      for (int i = 0; i < 100; ++i) {
        atl::Event event;
        auto waits = atl::spawn([&] { event.wait(); });
        atl::yield();
        event.set();
        waits.join();
      }
    });
    expect_none("barrier", [] {
      atl::Barrier barrier(20);
      atl::Scope scope;
      for (int party = 0; party < 20; ++party) {
        scope.fork([&] {
          for (int round = 0; round < 5; ++round) barrier.arrive_and_wait();
        });
      }
      scope.join();
    });
  });
}

// While the workers sleep, a thread that is no worker needs no kernel for a run that wakes nobody.
TEST_P(Counts, ARunFromOutsideCallsNoKernel) {
  atl::Runtime runtime(options());
  const auto id = [] { return std::this_thread::get_id(); };
  await_asleep(runtime, runtime.workers());
  EXPECT_EQ(runtime.run(id), id());  // the thread's first
  constexpr int kRuns = 100;
  const Calls calls = system_calls_of([&] {
    for (int run = 0; run < kRuns; ++run) EXPECT_EQ(runtime.run(id), id());
  });
  EXPECT_EQ(calls.futex, 0);
  EXPECT_EQ(calls.membarrier, 0);
  const double locked = locked_instructions_of([&] { runtime.run([] {}); });
  EXPECT_LE(locked, 16) << "whatever the number of workers";
}

// A worker calls the kernel to fall asleep and to wake another, and for nothing else: however often
// it searches, the calls are as many as the sleeps and the wakes.
TEST_P(Counts, CallsOfATreeAreThoseOfSleepsAndWakes) {
  atl::Runtime runtime(options());
  const auto sleeps_and_wakes = [&] {
    std::uint64_t sum = 0;
    for (const atl::Counts& counts : runtime.counts()) sum += counts.parks + counts.wakes;
    return static_cast<long>(sum);
  };
  runtime.run([] { return fib(10); });
  const long before = sleeps_and_wakes();
  const Calls calls = system_calls_of([&] {
    for (int times = 0; times < 20; ++times) EXPECT_EQ(runtime.run([] { return fib(16); }), 987);
  });
  const long events = sleeps_and_wakes() - before + 2 * 20 + GetParam();  // and `run`'s own
  RecordProperty("futex", std::to_string(calls.futex));
  RecordProperty("membarrier", std::to_string(calls.membarrier));
  RecordProperty("events", std::to_string(events));
  EXPECT_LE(calls.futex, 2 * events);
  EXPECT_LE(calls.membarrier, 2 * events);
}

TEST_P(Counts, LockedInstructionsOfForksAndTasks) {
  beside_busy_workers([] {
    const auto most = [](const char* what, double most, auto&& call) {
      const double found = locked_instructions_of(call);
      EXPECT_LE(found, most) << what;
    };
    most("fork", 0, [] { atl::fork([] {}).join(); });
    most("forks", 0, [] {
      auto first = atl::fork([] {});
      auto second = atl::fork([] {});
      auto third = atl::fork([] {});
      third.join();
      second.join();
      first.join();
    });
    most("scope", 0, [] {
      atl::Scope scope;
      for (int i = 0; i < 3; ++i) scope.fork([] {});
      scope.join();
    });
    most("spawn", 3, [] { atl::spawn([] {}).join(); });
    most("yield", 1, [] { atl::yield(); });
    // The wait, `set`, the join, and two counts of the domain, for tasks of worker 0 only; now and
    // then a fair turn.
    most("task that waits", 5.5, [] {
      atl::Event event;
      bool waits = false;
      auto task = atl::spawn([&] {
        waits = true;
        event.wait();
      });
      while (!waits) atl::yield();
      event.set();
      task.join();
    });
  });
}

TEST_P(Counts, ASpawnOnACoreCostsWhatOneOnItsWorkerDoes) {
  beside_busy_workers([] {
    const auto locked = [](atl::Place place) {
      return locked_instructions_of([=] { atl::spawn(place, [] {}).join(); }, 5);
    };
    EXPECT_EQ(locked(atl::on_core(atl::this_task::core())), locked(atl::on_worker(0)));
  });
}

// Where two tasks of the same group and section yield to each other.
TEST(Yields, AreAsShortInGroupsAndSections) {
  atl::RuntimeOptions options = atl::test::with_workers(1);
  options.interval = std::chrono::hours(1);
  atl::Runtime runtime(options);
  const atl::Group group(runtime, {.threads = 1});
  const auto instructions = [&](atl::Place place, bool in_a_section) {
    const auto yields = [=] {
      constexpr atl::SectionName kName("yields");
      std::optional<atl::Section> section;
      if (in_a_section) section.emplace(kName);
      bool over = false;
      auto other = atl::spawn([&] {
        std::optional<atl::Section> same;
        if (in_a_section) same.emplace(kName);
        while (!over) atl::yield();
      });
      const double found = atl::test::instructions_of([] { atl::yield(); }, 128);
      over = true;
      other.join();
      return found;
    };
    return runtime.spawn(place, yields).join();
  };
  const double alone = instructions(atl::Place(), false);
  EXPECT_LE(instructions(atl::Place(), true), 1.3 * alone);
  EXPECT_LE(instructions(group.place(), false), 1.3 * alone);
  EXPECT_LE(instructions(group.place(), true), 1.3 * alone);
}

TEST(WakesByOneCall, AreOneSystemCallFor256Waiters) {
  constexpr int kWaiters = 256;
  atl::Event event;
  std::vector<std::jthread> threads;
  const long calls = atl::test::calls_of_all().futex;
  for (int thread = 0; thread < kWaiters; ++thread) threads.emplace_back([&] { event.wait(); });
  // Until each goes to sleep.
  while (atl::test::calls_of_all().futex - calls < kWaiters) std::this_thread::yield();
  const atl::test::WakeWatch watch;
  event.set();
  EXPECT_LE(watch.by_this_thread(), 1);
  threads.clear();
}

INSTANTIATE_TEST_SUITE_P(Workers, Counts, testing::Values(1, 2, 8, 64), atl::test::workers_name);

}  // namespace

#endif
