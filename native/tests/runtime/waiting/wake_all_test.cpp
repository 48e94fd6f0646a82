// One call that ends the waits of many: tasks bound to workers and others, of several runtimes,
// threads and coroutines. What it costs: scheduler/wake_counts_test.cpp.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <coroutine>
#include <exception>
#include <optional>
#include <thread>
#include <vector>

#include "atoll/runtime.hpp"
#include "runtime/parts.hpp"
#include "scheduler/team.hpp"

namespace {

using atl::test::soon;
using atl::test::with_workers;

void until_all_sleep(atl::Runtime& runtime) {
  while (runtime.team().parking.committed() < runtime.workers()) std::this_thread::yield();
}

// In both runtimes by turns: a task bound to a worker and one that is not, a coroutine, and a
// thread.
class Crowd {
 public:
  Crowd(std::array<atl::Runtime*, 2> runtimes, int each, atl::Event& event) {
    for (int at = 0; at < each; ++at) {
      atl::Runtime& runtime = *runtimes[static_cast<std::size_t>(at) % 2];
      const auto wait = [this, &event] {
        ++waiting_;
        event.wait();
        ++up_;
      };
      const auto await = [](Crowd& crowd, atl::Event& of) -> atl::Coro<> {
        ++crowd.waiting_;
        co_await of;
        ++crowd.up_;
      };
      tasks_.push_back(runtime.spawn(atl::on_worker(at % runtime.workers()), wait));
      tasks_.push_back(runtime.spawn(wait));
      tasks_.push_back(runtime.spawn(await(*this, event)));
      threads_.emplace_back(wait);
    }
    while (waiting_ < size()) std::this_thread::yield();
  }
  int size() const { return static_cast<int>(tasks_.size() + threads_.size()); }
  bool is_up() const { return up_ == size(); }
  void join() {
    for (auto& task : tasks_) task.join();
    threads_.clear();
  }

 private:
  std::atomic<int> waiting_{0};
  std::atomic<int> up_{0};
  std::vector<atl::Task<>> tasks_;
  std::vector<std::jthread> threads_;
};

// More than one call holds at a time.
constexpr int kEach = 80;

TEST(WakeAll, AThreadWakesWaitersOfAllKinds) {
  atl::Runtime one(with_workers(3));
  atl::Runtime other(with_workers(2));
  for (int round = 0; round < 5; ++round) {
    atl::Event event;
    Crowd crowd({&one, &other}, kEach, event);
    event.set();
    EXPECT_TRUE(soon([&] { return crowd.is_up(); }));
    crowd.join();
  }
}

TEST(WakeAll, SoDoTasksHereOrElsewhere) {
  atl::Runtime one(with_workers(3));
  std::optional<atl::Runtime> other(with_workers(2));
  for (const atl::Place place : {atl::Place{}, atl::on_worker(0)}) {
    atl::Event event;
    Crowd crowd({&one, &*other}, kEach, event);
    one.spawn(place, [&] { event.set(); }).join();
    EXPECT_TRUE(soon([&] { return crowd.is_up(); }));
    crowd.join();
  }
  // A runtime that ends once its last task was woken from elsewhere.
  for (int round = 0; round < 20; ++round) {
    atl::Event event;
    for (int rank = 0; rank < 2; ++rank) {
      other->spawn(atl::on_worker(rank), [&] { event.wait(); }).detach();
    }
    until_all_sleep(*other);
    std::jthread sets([&] { event.set(); });
    other.reset();
    sets.join();
    other.emplace(with_workers(2));
  }
}

// Of any coroutine type, and in no task.
struct Plain {
  struct promise_type {
    Plain get_return_object() { return {}; }
    std::suspend_never initial_suspend() { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }
  };
};

// Where a thread sets the event such a coroutine goes on in the call, and may take long: no task or
// thread waits for it, whichever began to wait first.
TEST(WakeAll, ACoroutineThatGoesOnInTheCallHoldsUpNoOther) {
  atl::Runtime runtime(with_workers(2));
  atl::Event event;
  std::atomic<int> up{0};
  std::atomic<int> seen{0};
  const auto await = [](atl::Event& of, std::atomic<int>& now, std::atomic<int>& was) -> Plain {
    co_await of;
    was += soon([&] { return now == 2; }) ? 1 : 0;
  };
  await(event, up, seen);
  const auto wait = [&] {
    event.wait();
    ++up;
  };
  auto task = runtime.spawn(atl::on_worker(1), wait);
  until_all_sleep(runtime);
  const std::jthread thread(wait);
  std::this_thread::sleep_for(std::chrono::milliseconds(10));  // until that waits, most often
  await(event, up, seen);
  event.set();
  EXPECT_EQ(seen, 2);
  task.join();
}

// Else ten thousand that one event wakes would keep its task from going on.
TEST(WakeAll, ATaskThatSetsAnEventRunsNoCoroutineItself) {
  atl::Runtime runtime(with_workers(1));
  const auto waits = [](atl::Event& of, std::atomic<int>& count) -> Plain {
    co_await of;
    ++count;
  };
  for (const int coroutines : {1, 1000}) {
    atl::Event event;
    std::atomic<int> up{0};
    for (int at = 0; at < coroutines; ++at) waits(event, up);
    EXPECT_EQ(runtime.run([&] {
      event.set();
      return up.load();
    }),
              0);
    EXPECT_TRUE(soon([&] { return up == coroutines; }));
  }
}

// Workers 2 and 3 share a chiplet, so their parties share a leaf of the barrier's tree. The one
// that came first is on a worker that is busy until the other one is through.
TEST(WakeAll, NoPartyOfABarrierWaitsForAnotherPartysWorker) {
  constexpr int kThreads = 15;
  atl::Runtime runtime(with_workers(8));
  atl::Barrier barrier(kThreads + 2);
  std::atomic<bool> through{false};
  std::atomic<bool> over{false};
  auto first = runtime.spawn(atl::on_worker(2), [&] { barrier.arrive_and_wait(); });
  until_all_sleep(runtime);
  auto second = runtime.spawn(atl::on_worker(3), [&] {
    barrier.arrive_and_wait();
    through = true;
  });
  until_all_sleep(runtime);
  std::atomic<bool> busy{false};
  auto other = runtime.spawn(atl::on_worker(2), [&] {
    busy = true;
    while (!through && !over) std::this_thread::yield();
  });
  while (!busy) std::this_thread::yield();
  std::vector<std::jthread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&] { barrier.arrive_and_wait(); });
  }
  EXPECT_TRUE(soon([&] { return through.load(); }));
  over = true;
  first.join();
  second.join();
  other.join();
}

}  // namespace
