// Urgent tasks: they begin first, between the pieces of loops too, and leave turns for the others.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "atoll/runtime/group.hpp"
#include "atoll/runtime/parallel.hpp"
#include "atoll/runtime/runtime.hpp"
#include "atoll/runtime/task.hpp"
#include "atoll/runtime/this_task.hpp"
#include "runtime/parts.hpp"

namespace {

using atl::test::with_workers;

constexpr int kQueued = 1000;
constexpr int kUrgent = -1;

void expect_among_the_first(const std::vector<int>& begun) {
  const auto at = std::find(begun.begin(), begun.end(), kUrgent);
  // One turn in 64 is for the others.
  EXPECT_LE(at - begun.begin(), 1);
}

TEST(Urgent, ATaskBeginsBeforeAThousandThatAreQueued) {
  atl::Runtime runtime(with_workers(1));
  std::vector<int> begun;
  runtime.run([&] {
    std::vector<atl::Task<>> tasks;
    for (int i = 0; i < kQueued; ++i) {
      tasks.push_back(atl::spawn([&begun, i] { begun.push_back(i); }));
    }
    tasks.push_back(atl::spawn(atl::urgently(), [&] { begun.push_back(kUrgent); }));
    for (auto& task : tasks) task.join();
  });
  EXPECT_EQ(begun.size(), kQueued + 1U);
  expect_among_the_first(begun);
}

TEST(Urgent, SoDoesOneFromAThread) {
  atl::Runtime runtime(with_workers(1));
  atl::Group group(runtime, {.threads = 1, .approach = "static-local"});
  for (const atl::Place place : {atl::Place(), atl::on_worker(0), group.place()}) {
    std::vector<int> begun;
    std::atomic<bool> busy = false;
    std::atomic<bool> go = false;
    std::vector<atl::Task<>> tasks;
    tasks.push_back(runtime.spawn([&] {
      busy = true;
      while (!go) std::this_thread::yield();
    }));
    while (!busy) std::this_thread::yield();
    for (int i = 0; i < kQueued; ++i) {
      tasks.push_back(runtime.spawn(place, [&begun, i] { begun.push_back(i); }));
    }
    tasks.push_back(runtime.spawn(atl::urgently(place), [&] { begun.push_back(kUrgent); }));
    go = true;
    for (auto& task : tasks) task.join();
    expect_among_the_first(begun);
  }
}

class UrgentInALoop : public testing::Test {
 protected:
  // Spawns an urgent task when the loop has begun, and returns how many calls of its body there
  // were before that task.
  template <class Loop>
  int calls_before(Loop loop) {
    int calls = 0;
    int before = -1;
    std::atomic<bool> begun = false;
    std::atomic<bool> spawned = false;
    auto task = runtime.spawn([&] {
      loop([&] {
        ++calls;
        begun = true;
        while (!spawned) std::this_thread::yield();
      });
    });
    while (!begun) std::this_thread::yield();
    auto urgent = runtime.spawn(atl::urgently(), [&] { before = calls; });
    spawned = true;
    task.join();
    urgent.join();
    return before;
  }

  static constexpr int kItems = 100'000;
  atl::Runtime runtime{with_workers(1)};
};

TEST_F(UrgentInALoop, ATaskBeginsBetweenThePiecesOfALoop) {
  EXPECT_EQ(
      calls_before([](auto body) { atl::parallel_for(0, kItems, [&](int, int) { body(); }, 1); }),
      1);
  EXPECT_EQ(calls_before([](auto body) { atl::parallel_for(0, kItems, [&](int) { body(); }); }),
            1024);
  const auto one = [](int) { return 1; };
  EXPECT_EQ(calls_before([&](auto body) {
              static_cast<void>(atl::parallel_reduce(
                  0, kItems, 0, one,
                  [&](int a, int b) {
                    body();
                    return a + b;
                  },
                  kItems));
            }),
            1024);
}

TEST_F(UrgentInALoop, ATaskBeginsInsteadOfOneThatYields) {
  EXPECT_LE(calls_before([](auto body) {
              for (int i = 0; i < kItems; ++i) {
                body();
                atl::yield();
              }
            }),
            8);
}

TEST(Urgent, HoweverManyThereAreTheOthersGetTheirTurns) {
  std::atomic<bool> over = false;
  std::atomic<int> urgent = 0;
  std::function<void()> next;
  atl::Runtime runtime(with_workers(1));  // the last: its destructor waits for the tasks
  // Each starts the next: there is always one.
  next = [&] {
    ++urgent;
    if (!over) runtime.spawn(atl::urgently(), next).detach();
  };
  runtime.spawn(atl::urgently(), next).detach();
  runtime.run([] {  // from outside
    atl::spawn([] {}).join();
    auto other = atl::spawn([] {});
    atl::yield();
    other.join();
    // This lets one in after each piece, and comes back each time.
    atl::parallel_for(0, 100, [](int, int) {}, 1);
  });
  EXPECT_GT(urgent, 0);
  over = true;
}

TEST(Urgent, ATaskStaysInItsPlace) {
  atl::Runtime runtime(with_workers(8));
  atl::Group group(runtime, {.threads = 2, .approach = "static-local"});
  const std::vector<int> members = group.workers();
  for (int round = 0; round < 200; ++round) {
    const int rank = round % 8;
    auto bound =
        runtime.spawn(atl::urgently(atl::on_worker(rank)), [] { return atl::this_task::worker(); });
    auto grouped = runtime.spawn(atl::urgently(group.place()), [] {
      return atl::spawn([] { return atl::this_task::worker(); }).join();
    });
    EXPECT_EQ(bound.join(), rank);
    EXPECT_NE(std::find(members.begin(), members.end(), grouped.join()), members.end());
    runtime.spawn(atl::urgently(), [] { atl::yield(); }).join();
  }
}

}  // namespace
