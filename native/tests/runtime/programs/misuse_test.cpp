// The misuse of each public call: one line that says what is wrong and what to do, as an exception
// where the program can go on, else on stderr before the program ends. What the library cannot
// notice is in docs/runtime-hazards.md.
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "atoll/runtime.hpp"
#include "runtime/parts.hpp"

namespace {

using atl::test::with_workers;

// What `wrong` throws; a test fails if it throws nothing, or not one line.
std::string fault_of(const std::function<void()>& wrong) {
  try {
    wrong();
  } catch (const atl::RuntimeFault& fault) {
    const std::string text = fault.what();
    EXPECT_EQ(text.find('\n'), std::string::npos) << text;
    EXPECT_GT(text.size(), 10U) << text;
    return text;
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

void expect_fault(const std::string& part, const std::function<void()>& wrong) {
  EXPECT_NE(fault_of(wrong).find(part), std::string::npos)
      << fault_of(wrong) << "\n  lacks: " << part;
}

TEST(Misuse, OfCallsThatNeedATask) {
  const auto nothing = [] {};
  expect_fault("spawn was called outside of a task", [&] { atl::spawn(nothing).join(); });
  expect_fault("spawn was called outside of a task",
               [&] { atl::spawn(atl::on_worker(0), nothing).join(); });
  expect_fault("call was called outside of a task", [&] { atl::call(atl::on_worker(0), nothing); });
  expect_fault("fork was called outside of a task", [&] { atl::fork(nothing).join(); });
  expect_fault("Scope", [&] { atl::Scope().fork(nothing); });
  expect_fault("parallel_for", [&] { atl::parallel_for(0, 3, [](int) {}); });
  expect_fault("parallel_reduce", [&] {
    static_cast<void>(atl::parallel_reduce(0, 3, 0, [](int, int) { return 0; }, std::plus<>()));
  });
  expect_fault("all_do", [&] { atl::all_do([](int) {}); });
  expect_fault("worker", [] { static_cast<void>(atl::this_task::worker()); });
  expect_fault("core", [] { static_cast<void>(atl::this_task::core()); });
  expect_fault("Stoppable", [] { const atl::Stoppable part; });
  expect_fault("WorkerLocal", [] { const atl::WorkerLocal<int> values; });
  std::vector<int> numbers(10);
  std::vector<int> sums(10);
  expect_fault("parallel_sort", [&] { atl::parallel_sort(numbers.begin(), numbers.end()); });
  expect_fault("parallel_invoke", [&] { atl::parallel_invoke(nothing, nothing); });
  expect_fault("parallel_inclusive_scan", [&] {
    atl::parallel_inclusive_scan(numbers.begin(), numbers.end(), sums.begin(), 0, std::plus<>());
  });
  // These work on any thread.
  EXPECT_FALSE(atl::this_task::inside());
  EXPECT_FALSE(atl::this_task::stop_token().stop_possible());
  atl::yield();
  atl::sleep_for(std::chrono::microseconds(1));
  EXPECT_EQ(atl::blocking([] { return 5; }), 5);
  const atl::Section section("outside");
}

TEST(Misuse, OfHandles) {
  atl::Runtime runtime(with_workers(2));
  atl::Task<int> none;
  expect_fault("this handle has no task", [&] { none.join(); });
  none.detach();
  none.request_stop();
  EXPECT_FALSE(none.done());
  auto task = runtime.spawn([] { return 1; });
  EXPECT_EQ(task.join(), 1);
  expect_fault("this handle has no task", [&] { task.join(); });
  auto given = runtime.spawn([] { return 2; });
  const auto taken = std::move(given);
  expect_fault("this handle has no task", [&] { given.join(); });
  runtime.run([] {
    auto fork = atl::fork([] { return 3; });
    EXPECT_EQ(fork.join(), 3);
    expect_fault("this fork was joined before", [&] { fork.join(); });
    std::vector<atl::Task<>> tasks;
    expect_fault("when_any of no tasks", [&] { atl::when_any(tasks); });
    tasks.emplace_back();
    expect_fault("this handle has no task", [&] { atl::when_any(tasks); });
  });
}

TEST(Misuse, OfAScopeByItsChildren) {
  for (const int workers : {1, 2}) {
    atl::Runtime runtime(with_workers(workers));
    runtime.run([&] {
      expect_fault("in one of its children", [] {
        atl::Scope scope;
        scope.fork([&] { scope.fork([] {}); });
        scope.join();
      });
      expect_fault("in one of its children", [] {
        atl::Scope scope;
        scope.fork([&] { scope.join(); });
        scope.join();
      });
      atl::Scope scope;
      std::thread other([&] { expect_fault("outside of tasks", [&] { scope.fork([] {}); }); });
      other.join();
      scope.fork([] { atl::Scope().fork([] {}); });
      scope.join();
    });
  }
}

TEST(Misuse, OfAScopeByTasksOtherThanItsMakers) {
  const auto in_child = [](auto&& wrong) {
    atl::Scope scope;
    scope.fork([&] { wrong(scope); });
    scope.join();
  };
  for (const int workers : {1, 2}) {
    atl::Runtime runtime(with_workers(workers));
    const auto expect_faults = [&](const std::function<void()>& wrong) {
      runtime.run([&] { expect_fault("in another task", wrong); });
    };
    expect_faults([] {
      atl::Scope scope;
      atl::spawn([&] { scope.fork([] {}); }).join();
    });
    expect_faults([] {
      atl::Scope scope;
      atl::spawn([&] { scope.join(); }).join();
    });
    expect_faults([&] {
      in_child([](atl::Scope& outer) { atl::spawn([&] { outer.fork([] {}); }).join(); });
    });
    expect_faults([&] {
      in_child([&](atl::Scope& outer) { in_child([&](atl::Scope&) { outer.fork([] {}); }); });
    });
    expect_faults([&] {
      in_child([](atl::Scope& outer) { atl::parallel_for(0, 1, [&](int) { outer.fork([] {}); }); });
    });
    expect_faults([&] {
      in_child([](atl::Scope& outer) {
        const atl::Stoppable part;
        outer.fork([] {});
      });
    });
  }
}

// They have their own context, but a Fork has its maker's (runtime-hazards.md).
TEST(Misuse, OfAScopeInsideWhatItsMakerRunsInParallel) {
  for (const int workers : {1, 2}) {
    atl::Runtime runtime(with_workers(workers));
    const auto expect_faults = [&](void (*wrong)(atl::Scope&)) {
      runtime.run([&] {
        expect_fault("in a loop", [&] {
          atl::Scope scope;
          wrong(scope);
        });
      });
    };
    expect_faults(
        [](atl::Scope& outer) { atl::parallel_for(0, 3, [&](int) { outer.fork([] {}); }); });
    expect_faults([](atl::Scope& outer) { atl::parallel_for(0, 3, [&](int) { outer.join(); }); });
    expect_faults([](atl::Scope& outer) {
      atl::parallel_for(0, 3, [&](int) {
        const atl::Stoppable part;
        outer.fork([] {});
      });
    });
    expect_faults(
        [](atl::Scope& outer) { atl::parallel_invoke([] {}, [&] { outer.fork([] {}); }); });
    expect_faults([](atl::Scope& outer) {
      atl::Scope inner;
      inner.fork([&] { outer.fork([] {}); });
      inner.join();
    });
    runtime.run([] {
      atl::parallel_for(0, 3, [](int) {
        atl::Scope own;
        const atl::Stoppable part;
        own.fork([] {});
        own.join();
      });
    });
  }
}

TEST(Misuse, DoesNotIncludeAScopeUsedInAStoppablePartOfItsTask) {
  atl::Runtime runtime(with_workers(2));
  int done = 0;
  runtime.run([&] {
    atl::Scope scope;
    {
      const atl::Stoppable part;
      scope.fork([&] { ++done; });
      scope.join();
    }
    scope.fork([&] { ++done; });
    scope.join();
  });
  EXPECT_EQ(done, 2);
}

TEST(Misuse, OfPlacesAndGroups) {
  atl::Runtime runtime(with_workers(2));
  atl::Runtime other(with_workers(2));
  const auto nothing = [] {};
  for (const int bad : {-1, 1000, std::numeric_limits<int>::max()}) {
    for (const atl::Place place :
         {atl::on_worker(bad), atl::on_core(bad), atl::on_chiplet(bad), atl::on_node(bad)}) {
      expect_fault("in this runtime", [&] { runtime.spawn(place, nothing).join(); });
      runtime.run([&] {
        expect_fault("in this runtime", [&] { atl::spawn(place, nothing).join(); });
        expect_fault("in this runtime", [&] { atl::call(place, nothing); });
      });
    }
  }
  for (const int threads : {-1, 3, 1000}) {
    expect_fault("a group of", [&] { atl::Group(runtime, {.threads = threads}); });
  }
  expect_fault("no approach is called", [&] { atl::Group(runtime, {.approach = "fastest"}); });
  atl::Group group(runtime, {.threads = 2});
  expect_fault("a spread of 0", [&] { group.set_spread(0); });
  expect_fault("a spread of 9", [&] { group.set_spread(9); });
  expect_fault("of another runtime", [&] { other.spawn(group.place(), nothing).join(); });
  expect_fault("a spread of -1", [&] { runtime.set_spread(-1); });
}

TEST(Misuse, OfThePlaceOfADestroyedGroup) {
  atl::Runtime runtime(with_workers(2));
  auto group = std::make_unique<atl::Group>(runtime, atl::GroupOptions{.threads = 1});
  const atl::Place gone = group->place();
  group.reset();
  const auto expect_faults = [&] {
    expect_fault("destroyed", [&] { runtime.spawn(gone, [] {}).join(); });
    expect_fault("destroyed", [&] { runtime.spawn(atl::urgently(gone), [] {}).join(); });
    expect_fault("destroyed", [&] { runtime.run([&] { atl::spawn(gone, [] {}).join(); }); });
    expect_fault("destroyed", [&] { runtime.run([&] { atl::all_do(gone, [](int) {}); }); });
  };
  expect_faults();
  const atl::Group next(runtime, {.threads = 2});  // has the same domain
  expect_faults();
  EXPECT_NE(next.place(), gone);
  runtime.spawn(next.place(), [] {}).join();
}

TEST(Misuse, OfOptions) {
  const auto with = [](const std::function<void(atl::RuntimeOptions&)>& change) {
    return [change] {
      atl::RuntimeOptions options = with_workers(1);
      change(options);
      atl::Runtime runtime(options);
    };
  };
  expect_fault("workers is -1", with([](auto& options) { options.workers = -1; }));
  expect_fault("workers is 8193", with([](auto& options) { options.workers = 8'193; }));
  for (const double ns : {-1.0, 1e12, std::numeric_limits<double>::infinity(),
                          std::numeric_limits<double>::quiet_NaN()}) {
    expect_fault("latency.remote_chiplet_ns is",
                 with([=](auto& options) { options.latency = {.remote_chiplet_ns = ns}; }));
    expect_fault("latency.remote_node_ns is",
                 with([=](auto& options) { options.latency = {.remote_node_ns = ns}; }));
  }
  expect_fault("interval is 0", with([](auto& options) { options.interval = {}; }));
  expect_fault("no approach is called 'x'", with([](auto& options) { options.approach = "x"; }));
  expect_fault("no core", with([](auto& options) { options.places = atl::Places{}; }));
  expect_fault("StackOptions.bytes is 1", with([](auto& options) { options.stacks.bytes = 1; }));
  expect_fault("trace_events is", with([](auto& options) { options.trace_events = ~0ULL; }));
  expect_fault("no trace was recorded", [] {
    atl::Runtime(with_workers(1)).write_trace(testing::TempDir() + "trace.json");
  });
  // Options that contradict each other: the more exact one wins, and nothing breaks.
  atl::RuntimeOptions both = with_workers(2);
  both.approach = "static-local";
  both.own_approach = atl::approach_by_name("static:2");
  EXPECT_EQ(atl::Runtime(both).spread(), 2);
  both.own_approach = nullptr;
  both.approach = "static:1000";
  EXPECT_LE(atl::Runtime(both).spread(), 4);
  both.approach = "cache-size-centric";
  both.working_set_bytes = std::numeric_limits<std::uint64_t>::max();
  both.count_fills = false;
  both.count_l3 = true;
  both.fills = [](int) { return atl::Fills{}; };
  EXPECT_EQ(atl::Runtime(both).run([] { return 1; }), 1);
}

TEST(Misuse, OfWaits) {
  expect_fault("a Barrier of 0", [] { atl::Barrier barrier(0); });
  expect_fault("a Barrier of -5", [] { atl::Barrier barrier(-5); });
  expect_fault("counted below 0", [] { atl::Latch latch(-1); });
  atl::Latch latch(1);
  expect_fault("by less than 0", [&] { latch.count_down(-1); });
  expect_fault("counted below 0", [&] { latch.count_down(2); });
  expect_fault("a Channel of capacity 0", [] { atl::Channel<int> channel(0); });
  expect_fault("a Semaphore of -1", [] { atl::Semaphore semaphore(-1); });
  atl::Semaphore semaphore(0);
  expect_fault("release of 0", [&] { semaphore.release(0); });
  semaphore.release(std::numeric_limits<std::ptrdiff_t>::max());
  expect_fault("release of 1", [&] { semaphore.release(); });
  EXPECT_TRUE(semaphore.try_acquire());
  atl::Mutex mutex;
  expect_fault("unlock of a Mutex that is not locked", [&] { mutex.unlock(); });
  atl::Channel<int> closed(1);
  closed.close();
  closed.close();
  EXPECT_FALSE(closed.push(1));
  EXPECT_EQ(closed.pop(), std::nullopt);
}

TEST(Misuse, OfLoopsAndValues) {
  atl::Runtime runtime(with_workers(2));
  runtime.run([&] {
    expect_fault("the grain of a loop is -1", [] { atl::parallel_for(0, 3, [](int) {}, -1); });
    int calls = 0;
    atl::parallel_for(3, 0, [&](int) { ++calls; });  // reversed: empty
    EXPECT_EQ(calls, 0);
    atl::WorkerLocal<int> values;
    {
      const auto lease = values.lease();
      expect_fault("still leased", [&] { static_cast<void>(values.combine(std::plus<>())); });
      expect_fault("still leased", [&] { values.for_each([](int) {}); });
    }
    atl::Runtime other(with_workers(1));
    expect_fault("of another runtime",
                 [&] { other.run([&] { const auto lease = values.lease(); }); });
  });
}

TEST(Misuse, OfPlacedMemory) {
  const atl::NodeMap nowhere;
  expect_fault("needs a rank", [&] { atl::Array<int>::partitioned(10, nowhere); });
  expect_fault("needs a node", [&] { atl::Array<int>::interleaved(10, nowhere); });
  expect_fault("needs a node", [&] { atl::Replicated<int> copies(10, nowhere); });
  expect_fault("too large", [] { atl::Array<long>::local(~std::size_t{0} / 4); });
  auto array = atl::Array<int>::local(10);
  expect_fault("part 7", [&] { static_cast<void>(array.part(7)); });
}

using MisuseDeathTest = testing::Test;

void in_the_child(const std::string& line, const std::function<void()>& wrong) {
  const std::string style = GTEST_FLAG_GET(death_test_style);
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(wrong(), line);
  GTEST_FLAG_SET(death_test_style, style);
}

TEST(MisuseDeathTest, ARuntimeDestroyedInItsOwnTask) {
  in_the_child("atoll: a Runtime is destroyed inside one of its own tasks", [] {
    auto runtime = std::make_unique<atl::Runtime>(with_workers(1));
    runtime->run([&] { runtime.reset(); });
  });
}

TEST(MisuseDeathTest, AGroupDestroyedInItsOwnTask) {
  in_the_child("atoll: a Group is destroyed inside one of its own tasks", [] {
    atl::Runtime runtime(with_workers(2));
    auto group = std::make_unique<atl::Group>(runtime);
    group->spawn([&] { group.reset(); }).join();
  });
}

TEST(MisuseDeathTest, AMutexUnlockedTwiceByItsGuard) {
  in_the_child("unlock of a Mutex that is not locked", [] {
    atl::Mutex mutex;
    const std::lock_guard lock(mutex);
    mutex.unlock();
  });
}

TEST(MisuseDeathTest, ALeaseThatEndsInAnotherRuntime) {
  in_the_child("of another runtime", [] {
    atl::Runtime runtime(with_workers(1));
    atl::Runtime other(with_workers(1));
    runtime.run([&] {
      atl::WorkerLocal<int> values;
      using Lease = decltype(values.lease());
      alignas(Lease) std::array<std::byte, sizeof(Lease)> place;
      auto* const lease = new (place.data()) Lease(values.lease());
      other.run([&] { lease->~Lease(); });
    });
  });
}

}  // namespace
