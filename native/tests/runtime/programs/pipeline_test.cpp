// Pipelines of tasks that wait for each other by channels: scan, several filters, a sum. They end
// by the end of the input, by a consumer that has enough, by a stage that throws, and by a stop.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <optional>
#include <stdexcept>
#include <vector>

#include "atoll/runtime/channel.hpp"
#include "atoll/runtime/latch.hpp"
#include "atoll/runtime/runtime.hpp"
#include "atoll/runtime/scope.hpp"
#include "atoll/runtime/this_task.hpp"
#include "runtime/parts.hpp"

namespace {

using Batch = std::unique_ptr<std::vector<long>>;  // moves only
using Channel = atl::Channel<Batch>;

constexpr long kBatches = 200;
constexpr long kRows = 50;

// Pushes batches until nobody takes them any more; returns how many.
long scan(Channel& out, long batches) {
  long pushed = 0;
  for (; pushed < batches; ++pushed) {
    auto batch = std::make_unique<std::vector<long>>();
    for (long row = 0; row < kRows; ++row) batch->push_back(pushed * kRows + row);
    if (!out.push(std::move(batch), atl::this_task::stop_token())) break;
  }
  return pushed;
}

// Takes every row that `keep` keeps from `in` to `out`.
template <class Keep>
void filter(Channel& in, Channel& out, const Keep& keep) {
  while (std::optional<Batch> batch = in.pop(atl::this_task::stop_token())) {
    auto kept = std::make_unique<std::vector<long>>();
    for (const long row : **batch) {
      if (keep(row)) kept->push_back(row);
    }
    if (!out.push(std::move(kept), atl::this_task::stop_token())) return;
  }
}

// The parallel stages of a pipeline: the last one that ends closes what they push to.
template <class Keep>
void filters(atl::Scope& scope, int count, Channel& in, Channel& out, const Keep& keep) {
  auto left = std::make_shared<std::atomic<int>>(count);
  for (int stage = 0; stage < count; ++stage) {
    scope.fork([&in, &out, keep, left] {
      struct Closing {
        std::atomic<int>& left;
        Channel& out;
        ~Closing() {
          if (--left == 0) out.close();
        }
      } closing{*left, out};
      filter(in, out, keep);
    });
  }
}

long sum(Channel& in) {
  long rows = 0;
  while (std::optional<Batch> batch = in.pop()) {
    for (const long row : **batch) rows += row;
  }
  return rows;
}

class Pipelines : public testing::TestWithParam<int> {
 protected:
  atl::Runtime runtime{atl::test::with_workers(GetParam())};
};

TEST_P(Pipelines, EveryRowGoesThroughEveryStageOnce) {
  const long total = runtime.run([] {
    Channel scanned(2);
    Channel even(1);
    Channel third(3);
    atl::Scope scope;
    scope.fork([&] {
      EXPECT_EQ(scan(scanned, kBatches), kBatches);
      scanned.close();
    });
    filters(scope, 3, scanned, even, [](long row) { return row % 2 == 0; });
    filters(scope, 2, even, third, [](long row) { return row % 3 == 0; });
    const long rows = sum(third);
    scope.join();
    return rows;
  });
  long wanted = 0;
  for (long row = 0; row < kBatches * kRows; row += 6) wanted += row;
  EXPECT_EQ(total, wanted);
}

TEST_P(Pipelines, AConsumerThatHasEnoughEndsTheScan) {
  runtime.run([] {
    for (int round = 0; round < 20; ++round) {
      Channel scanned(2);
      Channel filtered(2);
      atl::Scope scope;
      scope.fork([&] {
        EXPECT_LT(scan(scanned, 1'000'000'000), 1000);
        scanned.close();
      });
      filters(scope, 2, scanned, filtered, [](long) { return true; });
      for (int batch = 0; batch < 10; ++batch) EXPECT_TRUE(filtered.pop());
      filtered.close();
      scanned.close();
      scope.join();
    }
  });
}

TEST_P(Pipelines, AStageThatThrowsEndsTheOthers) {
  runtime.run([] {
    for (int round = 0; round < 20; ++round) {
      Channel scanned(1);
      Channel filtered(1);
      atl::Scope scope;
      scope.fork([&] {
        scan(scanned, 1'000'000'000);
        scanned.close();
      });
      filters(scope, 2, scanned, filtered, [](long row) {
        if (row == 777) throw std::runtime_error("division by zero");
        return true;
      });
      sum(filtered);
      EXPECT_THROW(scope.join(), std::runtime_error);
    }
  });
}

TEST_P(Pipelines, AStopReachesStagesThatWait) {
  runtime.run([] {
    for (int round = 0; round < 20; ++round) {
      atl::Latch begun(1);
      auto query = atl::spawn([&] {
        Channel scanned(1);
        Channel filtered(1);
        atl::Scope scope;
        scope.fork([&] { scan(scanned, 1'000'000'000); });
        filters(scope, 2, scanned, filtered, [](long) { return true; });
        begun.count_down();
        scope.join();  // nobody pops: all stages wait
      });
      begun.wait();
      query.request_stop();
      query.join();
    }
  });
}

TEST_P(Pipelines, AThousandAtOnce) {
  const long total = runtime.run([] {
    std::vector<atl::Task<long>> pipelines;
    for (int number = 0; number < 1000; ++number) {
      pipelines.push_back(atl::spawn([] {
        atl::Channel<int> numbers(1);
        auto scans = atl::spawn([&] {
          for (int one = 1; one <= 10; ++one) numbers.push(one);
          numbers.close();
        });
        long rows = 0;
        while (const std::optional<int> one = numbers.pop()) rows += *one;
        scans.join();
        return rows;
      }));
    }
    long rows = 0;
    for (atl::Task<long>& one : pipelines) rows += one.join();
    return rows;
  });
  EXPECT_EQ(total, 55'000);
}

INSTANTIATE_TEST_SUITE_P(Workers, Pipelines, testing::Values(1, 2, 8));

}  // namespace
