// Blocking sections: values, exceptions, that workers go on meanwhile, and more sections than
// threads.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include "atoll/runtime/blocking.hpp"
#include "atoll/runtime/event.hpp"
#include "atoll/runtime/latch.hpp"
#include "atoll/runtime/runtime.hpp"
#include "atoll/runtime/sleep.hpp"
#include "atoll/runtime/this_task.hpp"
#include "runtime_parts.hpp"

namespace {

using atl::test::with_workers;

class Blocking : public testing::TestWithParam<int> {
 protected:
  atl::Runtime runtime{with_workers(GetParam())};
};

TEST_P(Blocking, GivesTheValueOfAThreadThatIsNoWorker) {
  const bool outside =
      runtime.run([] { return atl::blocking([] { return !atl::this_task::inside(); }); });
  EXPECT_TRUE(outside);
  auto owner = runtime.run([] { return atl::blocking([] { return std::make_unique<int>(7); }); });
  EXPECT_EQ(*owner, 7);
  int target = 0;
  runtime.run([&] { atl::blocking([&]() -> int& { return target; }) = 5; });
  EXPECT_EQ(target, 5);
}

TEST_P(Blocking, ExceptionsComeBack) {
  runtime.run([] {
    EXPECT_THROW(atl::blocking([] { throw std::out_of_range("section"); }), std::out_of_range);
  });
  EXPECT_THROW(atl::blocking([] { throw std::out_of_range("plain"); }), std::out_of_range);
}

TEST_P(Blocking, WorkersGoOnMeanwhile) {
  // Every section waits for what a task does after all sections have begun.
  const int sections = 3 * GetParam();
  atl::Latch begun(sections);
  atl::Event go;
  std::atomic<int> done = 0;
  std::vector<atl::Task<>> tasks;
  for (int each = 0; each < sections; ++each) {
    tasks.push_back(runtime.spawn([&] {
      atl::blocking([&] {
        begun.count_down();
        go.wait();
      });
      EXPECT_TRUE(atl::this_task::inside());
      ++done;
    }));
  }
  runtime.run([&] {
    begun.wait();
    go.set();
  });
  for (atl::Task<>& task : tasks) task.join();
  EXPECT_EQ(done, sections);
}

TEST_P(Blocking, OnAnyOtherThreadItIsACall) {
  const auto here = std::this_thread::get_id();
  EXPECT_EQ(atl::blocking([] { return std::this_thread::get_id(); }), here);
}

TEST_P(Blocking, MoreSectionsThanThreadsWaitInLine) {
  constexpr int kSections = 600;
  std::atomic<int> inside = 0;
  std::atomic<int> most = 0;
  std::vector<atl::Task<>> tasks;
  for (int each = 0; each < kSections; ++each) {
    tasks.push_back(runtime.spawn([&] {
      atl::blocking([&] {
        const int now = ++inside;
        int seen = most;
        while (seen < now && !most.compare_exchange_weak(seen, now)) {
        }
        std::this_thread::yield();
        --inside;
      });
    }));
  }
  for (atl::Task<>& task : tasks) task.join();
  EXPECT_EQ(inside, 0);
  EXPECT_GE(most, 1);
  EXPECT_LE(most, 256);
}

// ThreadSanitizer lets the child of a process with threads start none of its own, and to that child
// AddressSanitizer's allocator may come locked, by a thread that is not there (GCC 12).
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
TEST_P(Blocking, AChildOfForkHasThreadsOfItsOwn) {
  runtime.run([] {
    atl::sleep_for(std::chrono::microseconds(1));
    atl::blocking([] {});
  });
  const pid_t child = fork();
  if (child == 0) {
    atl::Runtime own(with_workers(GetParam()));
    const int value = own.run([] {
      atl::sleep_for(std::chrono::microseconds(1));
      return atl::blocking([] { return 42; });
    });
    _exit(value);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 42);
  EXPECT_EQ(runtime.run([] { return atl::blocking([] { return 1; }); }), 1);
}
#endif

INSTANTIATE_TEST_SUITE_P(Workers, Blocking, testing::Values(1, 2, 8),
                         [](const auto& info) { return std::to_string(info.param); });

}  // namespace
