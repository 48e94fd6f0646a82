// when_all and when_any: values, exceptions, the first that is done, deadlines, stops, misuse.
#include "atoll/runtime/when.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "atoll/runtime/event.hpp"
#include "atoll/runtime/runtime.hpp"
#include "atoll/runtime/this_task.hpp"
#include "runtime/parts.hpp"

namespace {

using namespace std::chrono_literals;
using atl::test::with_workers;

class When : public testing::TestWithParam<int> {
 protected:
  atl::Runtime runtime{with_workers(GetParam())};
};

TEST_P(When, AllGiveTheirValuesInOrder) {
  auto [number, nothing, text] =
      atl::when_all(runtime.spawn([] { return 7; }), runtime.spawn([] {}),
                    runtime.spawn([] { return std::string("seven"); }));
  EXPECT_EQ(number, 7);
  EXPECT_EQ(text, "seven");
  EXPECT_EQ(nothing, std::monostate());
  runtime.run([] {
    std::vector<atl::Task<int>> tasks;
    for (int each = 0; each < 20; ++each) tasks.push_back(atl::spawn([each] { return each; }));
    const std::vector<int> values = atl::when_all(tasks);
    for (int each = 0; each < 20; ++each)
      EXPECT_EQ(values.at(static_cast<std::size_t>(each)), each);
  });
  EXPECT_TRUE(atl::when_all(std::vector<atl::Task<int>>()).empty());
  const auto one = atl::when_all(runtime.spawn([] { return std::pair(1, 2); }));
  EXPECT_EQ(std::get<0>(one), std::pair(1, 2));
}

TEST_P(When, AllEndBeforeTheFirstExceptionComesOut) {
  std::atomic<int> ended{0};
  std::vector<atl::Task<>> tasks;
  tasks.push_back(runtime.spawn([&] { ++ended; }));
  tasks.push_back(runtime.spawn([] { throw std::out_of_range("second"); }));
  tasks.push_back(runtime.spawn([&] {
    while (!atl::this_task::stop_token().stop_requested()) atl::yield();
    ++ended;
    throw std::runtime_error("third");
  }));
  EXPECT_THROW(atl::when_all(tasks), std::out_of_range);
  EXPECT_EQ(ended, 2);
}

TEST_P(When, AnyIsTheOneThatIsDone) {
  for (int round = 0; round < 200; ++round) {
    const std::size_t winner = static_cast<std::size_t>(round) % 5;
    std::vector<atl::Event> go(5);
    std::vector<atl::Task<std::size_t>> tasks;
    for (std::size_t each = 0; each < go.size(); ++each) {
      tasks.push_back(runtime.spawn([&go, each] {
        go[each].wait();
        return each;
      }));
    }
    const auto race = [&] {
      auto setter = runtime.spawn([&] { go[winner].set(); });
      EXPECT_EQ(atl::when_any(tasks), winner);
      EXPECT_EQ(tasks[winner].join(), winner);
    };
    if (round % 2 == 0) {
      race();
    } else {
      runtime.run(race);
    }
    for (atl::Event& event : go) event.set();
    for (std::size_t each = 0; each < go.size(); ++each) {
      if (each != winner) {
        EXPECT_EQ(tasks[each].join(), each);
      }
    }
  }
}

TEST_P(When, AnyOfTasksThatAllEndAtOnceIsOneOfThem) {
  for (int round = 0; round < 300; ++round) {
    auto one = runtime.spawn([] { return 1; });
    auto other = runtime.spawn([] { return std::string("2"); });
    const std::size_t first = runtime.run([&] { return atl::when_any(one, other); });
    EXPECT_TRUE(first == 0 ? one.done() : other.done());
    EXPECT_EQ(one.join(), 1);
    EXPECT_EQ(other.join(), "2");
  }
}

TEST_P(When, AnyEndsByADeadlineOrAStop) {
  atl::Event go;
  std::vector<atl::Task<>> tasks;
  for (int each = 0; each < 3; ++each) tasks.push_back(runtime.spawn([&] { go.wait(); }));
  EXPECT_EQ(atl::when_any_for(tasks, 1ms), std::nullopt);
  EXPECT_EQ(atl::when_any_until(tasks, std::chrono::steady_clock::now()), std::nullopt);
  std::stop_source stop;
  auto stopper = runtime.spawn([&] { stop.request_stop(); });
  EXPECT_EQ(runtime.run([&] { return atl::when_any(tasks, stop.get_token()); }), std::nullopt);
  go.set();
  EXPECT_TRUE(atl::when_any(tasks, std::stop_token()).has_value());
}

TEST_P(When, AnyRefusesNoTasksAndTasksThatAreGone) {
  std::vector<atl::Task<>> tasks;
  EXPECT_THROW(atl::when_any(tasks), atl::RuntimeFault);
  tasks.emplace_back();
  EXPECT_THROW(atl::when_any(tasks), atl::RuntimeFault);
}

INSTANTIATE_TEST_SUITE_P(Workers, When, testing::Values(1, 2, 8),
                         [](const auto& info) { return std::to_string(info.param); });

}  // namespace
