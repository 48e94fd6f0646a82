// A task keeps its state while others yield to it: registers, rounding mode, the exception it
// handles, its locals, its place. Tasks of all kinds are mixed, since a yield between two tasks
// that may run anywhere takes a separate path.
#include <gtest/gtest.h>

#include <cfenv>
#include <cstdint>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include "atoll/runtime/event.hpp"
#include "atoll/runtime/runtime.hpp"
#include "atoll/runtime/task_local.hpp"
#include "atoll/runtime/this_task.hpp"
#include "runtime/parts.hpp"

extern "C" std::uint64_t atl_test_registers(void (*call)(void*), void* argument,
                                            std::uint64_t pattern);

namespace {

using atl::test::with_workers;

constexpr int kYields = 2000;

class Yield : public testing::TestWithParam<int> {
 protected:
  atl::Runtime runtime{with_workers(GetParam())};
};

atl::TaskLocal<int> number([] { return 0; });

// The bits of registers that a yield did not preserve.
std::uint64_t changed_registers(std::uint64_t pattern) {
  return atl_test_registers([](void*) { atl::yield(); }, nullptr, pattern);
}

void yield_with(int me, int rounding) {
  number.get() = me;
  std::fesetround(rounding);
  for (int i = 0; i < kYields; ++i) {
    const auto pattern = static_cast<std::uint64_t>(me) << 48 | static_cast<std::uint64_t>(i) << 8;
    ASSERT_EQ(changed_registers(pattern), 0U);
    ASSERT_EQ(std::fegetround(), rounding);
    ASSERT_EQ(number.get(), me);
  }
  std::fesetround(FE_TONEAREST);
}

TEST_P(Yield, WhatATaskHasStaysItsOwn) {
  runtime.run([&] {
    std::vector<atl::Task<>> tasks;
    tasks.push_back(atl::spawn([] { yield_with(1, FE_TONEAREST); }));
    tasks.push_back(atl::spawn([] { yield_with(2, FE_UPWARD); }));
    tasks.push_back(atl::spawn([] { yield_with(3, FE_TONEAREST); }));
    tasks.push_back(atl::spawn([] {
      for (int i = 0; i < kYields; ++i) atl::yield();
    }));
    const int core = runtime.cores()[0];
    tasks.push_back(atl::spawn(atl::on_core(core), [core] {
      for (int i = 0; i < kYields; ++i) {
        atl::yield();
        ASSERT_EQ(atl::this_task::core(), core);
      }
    }));
    tasks.push_back(atl::spawn([] {
      try {
        throw std::runtime_error("mine");
      } catch (const std::runtime_error&) {
        for (int i = 0; i < kYields; ++i) {
          atl::yield();
          try {
            throw;  // the one that this task handles
          } catch (const std::runtime_error& again) {
            ASSERT_EQ(again.what(), std::string("mine"));
          }
        }
      }
    }));
    for (atl::Task<>& task : tasks) task.join();
    EXPECT_EQ(std::uncaught_exceptions(), 0);
    EXPECT_EQ(std::current_exception(), nullptr);
  });
}

TEST_P(Yield, TasksThatYieldAndTasksThatWaitGoOnFromEachOther) {
  runtime.run([] {
    atl::Event go;
    int woken = 0;
    std::vector<atl::Task<>> tasks;
    for (int i = 0; i < 3; ++i) {
      tasks.push_back(atl::spawn([] { yield_with(4, FE_DOWNWARD); }));
    }
    auto waiter = atl::spawn([&] {
      go.wait();
      woken = 1;
    });
    for (int i = 0; i < kYields; ++i) atl::yield();
    go.set();
    waiter.join();
    EXPECT_EQ(woken, 1);
    for (atl::Task<>& task : tasks) task.join();
  });
}

INSTANTIATE_TEST_SUITE_P(Workers, Yield, testing::Values(1, 2, 8));

}  // namespace
