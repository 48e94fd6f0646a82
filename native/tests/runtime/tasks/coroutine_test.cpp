// C++20 coroutines of a user's own type that await tasks and continue on workers.
#include "atoll/runtime/coroutine.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <coroutine>
#include <exception>
#include <future>
#include <memory>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "atoll/runtime/coro.hpp"
#include "atoll/runtime/event.hpp"
#include "atoll/runtime/group.hpp"
#include "atoll/runtime/parallel.hpp"
#include "atoll/runtime/runtime.hpp"
#include "atoll/runtime/sleep.hpp"
#include "atoll/runtime/task_local.hpp"
#include "atoll/runtime/this_task.hpp"
#include "runtime/parts.hpp"

namespace {

using atl::test::with_workers;

// The smallest type that can give a result: starts at once, frees itself, the caller waits for a
// future.
template <class Value>
struct Job {
  struct promise_type {
    std::promise<Value> result;
    Job get_return_object() { return {result.get_future()}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_value(Value value) { result.set_value(std::move(value)); }
    void unhandled_exception() { result.set_exception(std::current_exception()); }
  };
  std::future<Value> future;
};

class Coroutine : public testing::TestWithParam<int> {
 protected:
  atl::Runtime runtime{with_workers(GetParam())};
};

TEST_P(Coroutine, AwaitsTasks) {
  const auto sum = [](atl::Runtime& on) -> Job<int> {
    int total = 0;
    for (int i = 0; i < 100; ++i) {
      total += co_await on.spawn([i] {
        if (i % 3 == 0) atl::yield();
        return i;
      });
    }
    co_return total;
  };
  EXPECT_EQ(sum(runtime).future.get(), 4950);
  // Started by a task as well.
  EXPECT_EQ(runtime.spawn([&] { return sum(runtime); }).join().future.get(), 4950);
}

TEST_P(Coroutine, AwaitsManyAtOnce) {
  const auto one = [](atl::Runtime& on, int i) -> Job<int> {
    co_return co_await on.spawn([i] { return 2 * i; });
  };
  std::vector<Job<int>> jobs;
  for (int i = 0; i < 200; ++i) jobs.push_back(one(runtime, i));
  int total = 0;
  for (Job<int>& job : jobs) total += job.future.get();
  EXPECT_EQ(total, 199 * 200);
}

TEST_P(Coroutine, ExceptionsOfATaskComeOutOfTheAwait) {
  const auto fails = [](atl::Runtime& on) -> Job<bool> {
    try {
      co_await on.spawn([] { throw std::out_of_range("task"); });
    } catch (const std::out_of_range&) {
      co_return true;
    }
    co_return false;
  };
  EXPECT_TRUE(fails(runtime).future.get());
}

TEST_P(Coroutine, GoesOnAsATaskOfTheRuntime) {
  static atl::TaskLocal<int> local;
  const auto moves = [](atl::Runtime& on, int rank) -> Job<int> {
    EXPECT_FALSE(atl::this_task::inside());
    co_await atl::schedule(on, atl::on_worker(rank));
    EXPECT_TRUE(atl::this_task::inside());
    ++*local;
    atl::sleep_for(std::chrono::microseconds(100));  // as any task
    EXPECT_EQ(*local, 1);
    const int worker = atl::this_task::worker();
    co_await atl::schedule(on);
    EXPECT_EQ(*local, 0);  // another task
    co_return worker;
  };
  EXPECT_EQ(moves(runtime, GetParam() - 1).future.get(), GetParam() - 1);
}

TEST_P(Coroutine, AfterAnAwaitItIsNoTaskAndHasNoTaskLocals) {
  static atl::TaskLocal<int> local;
  atl::Event begin;
  const auto asks = [](atl::Runtime& on, atl::Event& waits) -> Job<bool> {
    co_await on.spawn([&waits] { waits.wait(); });
    EXPECT_FALSE(atl::this_task::stop_token().stop_possible());
    EXPECT_THROW(local.get(), atl::RuntimeFault);
    co_return true;
  };
  Job<bool> job = asks(runtime, begin);
  begin.set();  // not before the coroutine has left its place to the task's worker
  EXPECT_TRUE(job.future.get());
}

// The task in which it ran has ended by then, and its memory may be another's.
TEST_P(Coroutine, AfterAnEventOrInACoroItIsInNoTaskEither) {
  static atl::TaskLocal<int> local;
  const auto in_no_task = [] {
    EXPECT_FALSE(atl::this_task::stop_token().stop_possible());
    EXPECT_THROW(local.get(), atl::RuntimeFault);
    int sum = 0;
    atl::parallel_for(0, 2, [&](int i) { sum += i; }, 2);
    return sum == 1;
  };
  // What it spawns on this worker waits until the coroutine has suspended.
  const auto child = [&]() -> atl::Coro<bool> {
    co_await atl::spawn(atl::on_worker(0), [] {});
    co_return in_no_task();
  };
  const auto parent = [&](atl::Event& event) -> Job<bool> {
    co_await atl::schedule(runtime, atl::on_worker(0));
    atl::spawn(atl::on_worker(0), [&] { event.set(); }).detach();
    co_await event;
    const bool after_event = in_no_task();
    co_await atl::schedule(runtime, atl::on_worker(0));
    co_return co_await child() && after_event;
  };
  for (int round = 0; round < 20; ++round) {
    atl::Event event;
    EXPECT_TRUE(parent(event).future.get());
  }
}

TEST_P(Coroutine, GoesOnAfterAnEventThoughItsGroupHasEnded) {
  atl::Event event;
  std::atomic<bool> gone_on{false};
  const auto waits = [&]() -> Job<bool> {
    co_await event;
    gone_on = true;
    co_return true;
  };
  {
    atl::Group group(runtime, {.threads = 1});
    group.run([&] { static_cast<void>(waits()); });
  }
  event.set();
  EXPECT_TRUE(atl::test::soon([&] { return gone_on.load(); }));
}

// A coroutine that its owner destroys.
struct Owned {
  struct promise_type {
    Owned get_return_object() { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }
  };
  std::coroutine_handle<promise_type> handle;
};

TEST_P(Coroutine, MayBeDestroyedWhileItAwaits) {
  std::atomic<int> stopped{0};
  std::atomic<int> resumed{0};
  const auto awaits = [&](atl::Event& begin) -> Owned {
    co_await runtime.spawn([&] {
      begin.wait();
      stopped += atl::this_task::stop_token().stop_requested();
      return std::vector<int>(100, 1);  // somebody has to free it
    });
    ++resumed;
  };
  constexpr int kRounds = 100;
  for (int round = 0; round < kRounds; ++round) {
    atl::Event begin;
    const Owned coroutine = awaits(begin);
    coroutine.handle.destroy();
    begin.set();
    while (stopped <= round) std::this_thread::yield();  // `begin` must outlive the task
  }
  EXPECT_EQ(stopped, kRounds);
  EXPECT_EQ(resumed, 0);
}

TEST_P(Coroutine, IsNotResumedByATaskThatItsDestructionStops) {
  std::atomic<bool> end{false};
  std::atomic<bool> ended{false};
  std::atomic<int> resumed{0};
  std::promise<std::stop_token> started;
  auto result = std::make_shared<int>(1);
  const std::weak_ptr<int> left = result;
  const auto awaits = [&]() -> Owned {
    auto task = runtime.spawn([&, result = std::move(result)]() mutable {
      started.set_value(atl::this_task::stop_token());
      while (!end) atl::yield();
      ended = true;
      return std::move(result);
    });
    co_await std::move(task);
    ++resumed;
  };
  const Owned coroutine = awaits();
  // The request returns once the task has ended and its worker has looked for more.
  const std::stop_callback at_stop(started.get_future().get(), [&] {
    end = true;
    while (!ended) std::this_thread::yield();
    for (int times = 0; times < 10; ++times) runtime.run([] {});
  });
  coroutine.handle.destroy();
  while (!left.expired()) std::this_thread::yield();  // somebody frees it
  EXPECT_EQ(resumed, 0);
}

TEST_P(Coroutine, LeavesATaskWhoseEndIncludesThatOfItsFunction) {
  struct Wait {
    void operator()(std::atomic<int>* gone) const {
      atl::sleep_for(std::chrono::milliseconds(2));
      ++*gone;
    }
  };
  std::atomic<int> gone{0};
  atl::Event begin;
  {
    atl::Runtime own(with_workers(GetParam()));
    const auto awaits = [&]() -> Owned {
      auto task = own.spawn([&begin, kept = std::unique_ptr<std::atomic<int>, Wait>(&gone)] {
        begin.wait();
        return std::unique_ptr<std::atomic<int>, Wait>(kept.get());
      });
      co_await std::move(task);
    };
    for (int i = 0; i < 20; ++i) awaits().handle.destroy();
    begin.set();
  }
  EXPECT_EQ(gone, 40);
}

using CoroutineDeathTest = testing::Test;

// A promise that hands exceptions on to whoever resumes the coroutine.
struct Throwing {
  struct promise_type {
    Throwing get_return_object() { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { throw; }
  };
};

TEST(CoroutineDeathTest, SaysWhichCoroutineAnExceptionLeft) {
  const auto fails = [](auto& awaited) -> Throwing {
    co_await std::move(awaited);
    throw std::out_of_range("lost");
  };
  const auto after = [&](auto await) {
    const std::string style = GTEST_FLAG_GET(death_test_style);
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_DEATH(
        {
          atl::Runtime runtime(with_workers(1));
          atl::Event event;
          await(runtime, event);
          event.set();
          while (true) std::this_thread::yield();
        },
        "atoll: an exception left a coroutine of type .*Throwing.* that a worker resumed.*lost");
    GTEST_FLAG_SET(death_test_style, style);
  };
  after([&](atl::Runtime& runtime, atl::Event& event) {
    auto task = runtime.spawn([&] { event.wait(); });
    fails(task);
  });
  after([&](atl::Runtime& runtime, atl::Event& event) { runtime.run([&] { fails(event); }); });
  after([&](atl::Runtime& runtime, atl::Event&) {
    auto scheduled = atl::schedule(runtime);
    fails(scheduled);
  });
}

INSTANTIATE_TEST_SUITE_P(Workers, Coroutine, testing::Values(1, 2, 8),
                         [](const auto& info) { return std::to_string(info.param); });

}  // namespace
