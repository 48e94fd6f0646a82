// atl::Coro: values, exceptions, stop tokens, tasks and events that it awaits, places, memory.
#include "atoll/runtime/coro.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <coroutine>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "atoll/runtime/coroutine.hpp"
#include "atoll/runtime/event.hpp"
#include "atoll/runtime/group.hpp"
#include "atoll/runtime/runtime.hpp"
#include "atoll/runtime/scope.hpp"
#include "atoll/runtime/sleep.hpp"
#include "atoll/runtime/stoppable.hpp"
#include "atoll/runtime/task_local.hpp"
#include "atoll/runtime/this_task.hpp"
#include "runtime/parts.hpp"

namespace {

using atl::Coro;
using atl::test::with_workers;

class Coros : public testing::TestWithParam<int> {
 protected:
  atl::Runtime runtime{with_workers(GetParam())};
};

// With a task at each of its leaves.
Coro<long> fibonacci(int n) {
  if (n < 2) co_return co_await atl::spawn([n] { return long{n}; });
  const long left = co_await fibonacci(n - 1);
  co_return left + co_await fibonacci(n - 2);
}

TEST_P(Coros, GiveTheirValuesToWhoeverAwaitsThem) {
  EXPECT_EQ(runtime.run(fibonacci(12)), 144);
  runtime.run([] {
    std::vector<atl::Task<long>> tasks;
    for (int n = 0; n < 10; ++n) tasks.push_back(atl::spawn(fibonacci(n)));
    EXPECT_EQ(tasks[9].join(), 34);
    EXPECT_EQ(atl::call(atl::on_worker(0), fibonacci(5)), 5);
  });
  const auto text = [](std::unique_ptr<std::string> given) -> Coro<std::unique_ptr<std::string>> {
    *given += "b";
    co_return given;
  };
  EXPECT_EQ(*runtime.run(text(std::make_unique<std::string>("a"))), "ab");
  int place = 0;
  const auto reference = [](int& of) -> Coro<int&> { co_return of; };
  EXPECT_EQ(&runtime.run(reference(place)), &place);
}

TEST_P(Coros, PassExceptionsOnFromTheirChildrenAndTasks) {
  const auto fails = [](bool in_a_task) -> Coro<> {
    if (in_a_task) co_await atl::spawn([] { throw std::out_of_range("task"); });
    throw std::out_of_range("coroutine");
  };
  const auto catches = [&](bool in_a_task) -> Coro<std::string> {
    std::string text;
    try {
      co_await fails(in_a_task);
    } catch (const std::out_of_range& fault) {
      text = fault.what();
    }
    co_return text;
  };
  EXPECT_EQ(runtime.run(catches(false)), "coroutine");
  EXPECT_EQ(runtime.run(catches(true)), "task");
  EXPECT_THROW(runtime.run(fails(true)), std::out_of_range);
}

TEST_P(Coros, AreATaskWithAStopTokenAndTaskLocalsThatTheirChildrenShare) {
  static atl::TaskLocal<int> local;
  atl::Event begun;
  const auto child = [&]() -> Coro<bool> {
    EXPECT_EQ(*local, 7);
    co_await atl::spawn([] {});
    EXPECT_EQ(*local, 7);  // also after an await
    begun.set();
    while (!atl::this_task::stop_token().stop_requested()) {
      co_await atl::spawn([] { atl::yield(); });
      atl::Scope scope;  // it may fork and wait
      scope.fork([] {});
      scope.join();
    }
    co_return true;
  };
  const auto parent = [&]() -> Coro<bool> {
    *local = 7;
    co_return co_await child();
  };
  auto task = runtime.spawn(parent());
  begun.wait();
  task.request_stop();
  EXPECT_TRUE(task.join());
}

TEST_P(Coros, MayKeepAScopeAcrossAnAwait) {
  atl::Event event;
  const auto forks = [](atl::Scope& scope, std::atomic<int>& done) -> Coro<> {
    scope.fork([&] { ++done; });
    co_await atl::spawn([] { atl::yield(); });
    scope.fork([&] { ++done; });
  };
  const auto waits = [&](bool stoppable) -> Coro<int> {
    std::optional<atl::Stoppable> part;
    if (stoppable) part.emplace();  // without effect after the await
    std::atomic<int> done{0};
    atl::Scope scope;
    scope.fork([&] { ++done; });
    co_await event;
    scope.fork([&] { ++done; });
    co_await atl::spawn([] { atl::yield(); });
    scope.join();
    co_await forks(scope, done);
    scope.join();
    co_return done.load();
  };
  auto plain = runtime.spawn(waits(false));
  auto stoppable = runtime.spawn(waits(true));
  event.set();
  EXPECT_EQ(plain.join(), 4);
  EXPECT_EQ(stoppable.join(), 4);
}

TEST_P(Coros, AwaitAnEventWithoutAStackAndGoOnInTheirPlace) {
  atl::Group group(runtime, {.threads = 1, .approach = "static-local"});
  const int worker = group.workers().front();
  const auto waits = [](atl::Event& event) -> Coro<int> {
    co_await event;
    EXPECT_TRUE(atl::this_task::inside());
    co_return atl::this_task::worker();
  };
  for (int round = 0; round < 100; ++round) {
    atl::Event event;
    std::vector<atl::Task<int>> tasks;
    for (int each = 0; each < 5; ++each) tasks.push_back(group.spawn(waits(event)));
    if (round % 2 == 0) {
      event.set();  // from a thread that is not a worker
    } else {
      runtime.run([&] { event.set(); });
    }
    for (auto& task : tasks) EXPECT_EQ(task.join(), worker);
  }
}

TEST_P(Coros, AwaitTasksOfOtherPlacesAndRuntimesAndGoOnInTheirPlace) {
  atl::Runtime other(with_workers(1));
  std::atomic<bool> ended{false};
  {
    atl::Group group(runtime, {.threads = 1, .approach = "static-local"});
    const int worker = group.workers().front();
    const auto elsewhere = [] { return atl::call(atl::on_worker(0), [] { return 1; }); };
    const auto child = [&]() -> Coro<int> {
      const int there = co_await other.spawn([] {
        atl::sleep_for(std::chrono::microseconds(100));
        return 1;
      });
      co_return there + co_await runtime.spawn(atl::on_worker(0), elsewhere);
    };
    const auto parent = [&]() -> Coro<> {
      EXPECT_EQ(co_await child(), 2);
      EXPECT_EQ(atl::this_task::worker(), worker);
      EXPECT_EQ(atl::spawn([] { return atl::this_task::worker(); }).join(), worker);
      atl::spawn([&] {
        atl::sleep_for(std::chrono::milliseconds(1));
        ended = true;
      }).detach();  // the group waits for it
    };
    group.run(parent());
  }
  EXPECT_TRUE(ended);
}

// Resumes who awaits it where `go` is called.
struct Gate {
  std::atomic<void*> waiting{nullptr};

  bool await_ready() const { return false; }
  void await_suspend(std::coroutine_handle<> handle) { waiting = handle.address(); }
  int await_resume() const { return 7; }
  void go() {
    while (waiting == nullptr) std::this_thread::yield();
    std::coroutine_handle<>::from_address(waiting).resume();
  }
};

TEST_P(Coros, MayEndInAnotherRuntimeOrOnAnyThread) {
  atl::Runtime other(with_workers(1));
  const auto moves = [&]() -> Coro<int> {
    co_await atl::schedule(other);
    co_return 1;
  };
  const auto passes = [](Gate& gate) -> Coro<int> { co_return co_await gate; };
  for (int round = 0; round < 20; ++round) {
    atl::Runtime own(with_workers(GetParam()));
    const atl::Group group(own, {.threads = 1, .approach = "static-local"});
    Gate gate;
    std::jthread thread([&] { gate.go(); });
    atl::Task<int> gated = own.spawn(group.place(), passes(gate));
    own.spawn(group.place(), moves()).detach();
    EXPECT_EQ(own.run(moves()), 1);
    EXPECT_EQ(gated.join(), 7);
  }
}

TEST_P(Coros, WaitForTheChildrenOfTheirScopeOnAnyThread) {
  atl::Runtime other(with_workers(1));
  const auto leaves = [](Gate& gate, std::atomic<int>& done) -> Coro<> {
    atl::Scope scope;
    for (int child = 0; child < 3; ++child) {
      scope.fork([&] {
        atl::sleep_for(std::chrono::milliseconds(1));
        ++done;
      });
    }
    co_await gate;
  };
  for (const bool on_a_worker : {false, true}) {
    Gate gate;
    std::atomic<int> done{0};
    int when_left = 0;
    const auto go = [&] {
      gate.go();
      when_left = done;
    };
    atl::Task<> task = runtime.spawn(leaves(gate, done));
    if (on_a_worker) {
      other.run(go);
    } else {
      go();
    }
    EXPECT_EQ(when_left, 3);
    task.join();
  }
}

// The scope's children end only when they are asked to stop.
TEST_P(Coros, ThatThrowOnAnyThreadStopTheChildrenOfTheirScope) {
  const auto leaves = [](Gate& gate) -> Coro<> {
    atl::Scope scope;
    for (int child = 0; child < 3; ++child) {
      scope.fork([] {
        while (!atl::this_task::stop_token().stop_requested()) atl::yield();
      });
    }
    co_await gate;
    EXPECT_THROW(scope.fork([] {}), atl::RuntimeFault);
    EXPECT_THROW(scope.join(), atl::RuntimeFault);
    throw std::out_of_range("elsewhere");
  };
  Gate gate;
  atl::Task<> task = runtime.spawn(leaves(gate));
  gate.go();
  EXPECT_THROW(task.join(), std::out_of_range);
}

TEST_P(Coros, LeaveATaskThatResumesThemItsOwnTaskLocalsAndStopToken) {
  static atl::TaskLocal<int> local;
  const auto waits = [](Gate& gate, atl::Event& event) -> Coro<int> {
    *local = 1;
    const int passed = co_await gate;
    EXPECT_EQ(std::exchange(*local, 2), 1);  // its own task-locals, in the place of the task
    co_await event;
    EXPECT_EQ(*local, 2);
    co_return passed;
  };
  for (const bool ends : {false, true}) {
    Gate gate;
    atl::Event event;
    if (ends) event.set();
    atl::Task<int> waiter = runtime.spawn(waits(gate, event));
    runtime.run([&] {
      *local = 5;
      const std::stop_token own = atl::this_task::stop_token();
      gate.go();
      EXPECT_EQ(*local, 5);
      EXPECT_EQ(atl::this_task::stop_token(), own);
    });
    event.set();
    EXPECT_EQ(waiter.join(), 7);
  }
}

TEST_P(Coros, AwaitWhatIsReadyOrDoesNotSuspendOrThrows) {
  struct Ready : std::suspend_never {
    std::unique_ptr<int> await_resume() { return std::make_unique<int>(1); }
  };
  struct Passes : std::suspend_always {
    bool await_suspend(std::coroutine_handle<>) { return false; }
  };
  struct Returns : std::suspend_always {
    std::coroutine_handle<> await_suspend(std::coroutine_handle<> handle) { return handle; }
  };
  struct Throws : std::suspend_always {
    void await_suspend(std::coroutine_handle<>) { throw std::out_of_range("await"); }
  };
  const auto awaits = []() -> Coro<int> {
    co_await Passes();
    co_await Returns();
    int thrown = 0;
    try {
      co_await Throws();
    } catch (const std::out_of_range&) {
      ++thrown;
    }
    co_return thrown + *co_await Ready();
  };
  EXPECT_EQ(runtime.run(awaits()), 2);
}

TEST_P(Coros, MayAwaitOtherThings) {
  const auto moves = [&]() -> Coro<int> {
    co_await std::suspend_never();
    co_await atl::schedule(runtime, atl::on_worker(GetParam() - 1));
    co_return atl::this_task::worker();
  };
  EXPECT_EQ(runtime.run(moves()), GetParam() - 1);
}

TEST_P(Coros, ThatHaveNotBegunMayBeDestroyed) {
  auto captured = std::make_shared<int>(1);
  const auto holds = [](std::shared_ptr<int> held) -> Coro<int> { co_return *held; };
  {
    const Coro<int> dropped = holds(captured);
    EXPECT_EQ(captured.use_count(), 2);
  }
  EXPECT_EQ(captured.use_count(), 1);
  EXPECT_EQ(runtime.run(holds(captured)), 1);
  EXPECT_EQ(captured.use_count(), 1);
  runtime.spawn(holds(captured)).detach();
}

// Its frame is the task's memory.
TEST_P(Coros, KeepTheirParametersAsLongAsTheirHandle) {
  auto passed = std::make_shared<int>(1);
  const auto holds = [](std::shared_ptr<int>) -> Coro<> { co_return; };
  for (const bool joins : {true, false}) {
    std::optional<atl::Task<>> task(runtime.spawn(holds(passed)));
    while (!task->done()) std::this_thread::yield();
    EXPECT_EQ(passed.use_count(), 2);
    if (joins) task->join();
    task.reset();
    EXPECT_EQ(passed.use_count(), 1);
  }
}

TEST_P(Coros, AreSpawnedOrAwaitedOnce) {
  const auto twice = []() -> Coro<int> {
    Coro<long> once = fibonacci(1);
    static_cast<void>(co_await std::move(once));
    static_cast<void>(co_await std::move(once));
    co_return 1;
  };
  EXPECT_THROW(runtime.run(twice()), atl::RuntimeFault);
  Coro<long> moved = fibonacci(1);
  EXPECT_EQ(runtime.run(std::move(moved)), 1);
  EXPECT_THROW(static_cast<void>(runtime.spawn(std::move(moved))), atl::RuntimeFault);
}

TEST_P(Coros, WaitByTheThousandForOneEvent) {
  atl::Event open;
  std::atomic<int> through{0};
  const auto waits = [&]() -> Coro<> {
    co_await open;
    ++through;
  };
  constexpr int kCoros = 10'000;
  std::vector<atl::Task<>> tasks;
  runtime.run([&] {
    for (int each = 0; each < kCoros; ++each) tasks.push_back(atl::spawn(waits()));
  });
  open.set();
  for (atl::Task<>& task : tasks) task.join();
  EXPECT_EQ(through, kCoros);
}

INSTANTIATE_TEST_SUITE_P(Workers, Coros, testing::Values(1, 2, 8),
                         [](const auto& info) { return std::to_string(info.param); });

}  // namespace
