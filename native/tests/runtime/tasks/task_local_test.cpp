// Task-locals: which task has which value, and when values are made and destroyed.
#include "atoll/runtime/task_local.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "atoll/runtime/all_do.hpp"
#include "atoll/runtime/fork.hpp"
#include "atoll/runtime/parallel.hpp"
#include "atoll/runtime/runtime.hpp"
#include "atoll/runtime/scope.hpp"
#include "atoll/runtime/this_task.hpp"
#include "runtime/parts.hpp"

namespace {

using atl::test::with_workers;

class TaskLocals : public testing::TestWithParam<int> {
 protected:
  atl::Runtime runtime{with_workers(GetParam())};
};

TEST_P(TaskLocals, EachTaskHasItsOwnAcrossSuspensions) {
  atl::TaskLocal<int> local;
  atl::TaskLocal<std::string> text([] { return std::string("fresh"); });
  std::atomic<int> wrong = 0;
  std::vector<atl::Task<>> tasks;
  for (int each = 0; each < 50; ++each) {
    tasks.push_back(runtime.spawn([&, each] {
      wrong += local.get() == 0 && *text == "fresh" ? 0 : 1;
      *local = each;
      text->append(std::to_string(each));
      for (int times = 0; times < 10; ++times) {
        atl::yield();
        wrong += *local == each && *text == "fresh" + std::to_string(each) ? 0 : 1;
      }
    }));
  }
  for (atl::Task<>& task : tasks) task.join();
  EXPECT_EQ(wrong, 0);
}

TEST_P(TaskLocals, ForksLoopsAndScopesShareTheirParents) {
  atl::TaskLocal<std::atomic<int>> count;
  const int seen = runtime.run([&] {
    *count = 100;
    auto child = atl::fork([&] { ++*count; });
    child.join();
    atl::parallel_for(0, 1000, [&](int) { ++*count; });
    atl::all_do([&](int) { ++*count; });
    atl::Scope scope;
    for (int each = 0; each < 10; ++each) scope.fork([&] { ++*count; });
    scope.request_stop();  // with a stop token of its own, too
    for (int each = 0; each < 10; ++each) scope.fork([&] { ++*count; });
    scope.join();
    auto spawned = atl::spawn([&] { return ++*count; });
    EXPECT_EQ(spawned.join(), 1);
    return count->load();
  });
  EXPECT_EQ(seen, 1121 + GetParam());
}

struct Counted {
  explicit Counted(int& alive) : alive_(&alive) { ++*alive_; }
  Counted(const Counted&) = delete;
  ~Counted() { --*alive_; }
  int* alive_;
};

TEST_P(TaskLocals, ValuesGoWithTheirTask) {
  int alive = 0;
  atl::TaskLocal<Counted> local([&] { return Counted(alive); });
  runtime.run([&] {
    EXPECT_EQ(local->alive_, &alive);
    EXPECT_EQ(alive, 1);
  });
  EXPECT_EQ(alive, 0);
  std::thread([&] {
    local.get();
    EXPECT_EQ(alive, 1);
  }).join();
  EXPECT_EQ(alive, 0);
}

TEST_P(TaskLocals, TheLastMadeGoesFirst) {
  struct Noted {
    std::vector<int>* gone;
    int number;
    Noted(std::vector<int>& to, int its_number) : gone(&to), number(its_number) {}
    Noted(const Noted&) = delete;
    ~Noted() { gone->push_back(number); }
  };
  std::vector<int> gone;
  atl::TaskLocal<Noted> first([&] { return Noted(gone, 1); });
  atl::TaskLocal<Noted> second([&] { return Noted(gone, 2); });
  atl::TaskLocal<Noted> third([&] { return Noted(gone, 3); });
  runtime.run([&] {
    second.get();
    third.get();
    first.get();
  });
  EXPECT_EQ(gone, (std::vector{1, 3, 2}));
}

TEST_P(TaskLocals, WhatGoesMayAskForWhatHasGone) {
  struct Asks {
    atl::TaskLocal<int>* other;
    int* found;
    Asks(atl::TaskLocal<int>& the_other, int& to) : other(&the_other), found(&to) {}
    Asks(const Asks&) = delete;
    ~Asks() { *found = other->get(); }
  };
  int found = 0;
  atl::TaskLocal<int> newer([] { return 7; });
  atl::TaskLocal<Asks> older([&] { return Asks(newer, found); });
  std::thread([&] {
    older.get();
    newer.get() = 1;
  }).join();
  EXPECT_EQ(found, 7);  // its own value, newly made
}

TEST_P(TaskLocals, AnInitialFunctionThatThrowsIsAskedAgain) {
  int calls = 0;
  atl::TaskLocal<int> local([&] {
    if (++calls == 1) throw std::out_of_range("first");
    return 7;
  });
  runtime.run([&] {
    EXPECT_THROW(local.get(), std::out_of_range);
    EXPECT_EQ(local.get(), 7);
    EXPECT_EQ(local.get(), 7);
  });
  EXPECT_EQ(calls, 2);
}

TEST_P(TaskLocals, AThreadThatIsNoWorkerHasItsOwn) {
  atl::TaskLocal<int> local([] { return 1; });
  local.get() = 5;
  std::thread([&] { EXPECT_EQ(local.get(), 1); }).join();
  runtime.run([&] { EXPECT_EQ(local.get(), 1); });
  EXPECT_EQ(local.get(), 5);
}

INSTANTIATE_TEST_SUITE_P(Workers, TaskLocals, testing::Values(1, 2, 8),
                         [](const auto& info) { return std::to_string(info.param); });

}  // namespace
