// A morsel scheduler (Leis et al., "Morsel-Driven Parallelism", SIGMOD 2014): queries whose
// pipelines are morsels that workers take one by one, with a bound of queries at a time, short
// queries that are urgent, and queries that are cancelled: before they begin, in the middle, by a
// limit of time.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "atoll/runtime/all_do.hpp"
#include "atoll/runtime/group.hpp"
#include "atoll/runtime/parallel.hpp"
#include "atoll/runtime/runtime.hpp"
#include "atoll/runtime/semaphore.hpp"
#include "atoll/runtime/stoppable.hpp"
#include "atoll/runtime/this_task.hpp"
#include "runtime/parts.hpp"

namespace {

using namespace std::chrono_literals;

constexpr long kMorsels = 300;

// Two pipelines, one after the other. Each morsel is counted.
struct Query {
  std::atomic<long> morsels{0};
  std::atomic<bool> ended{false};

  void run(long per_pipeline) {
    for (int pipeline = 0; pipeline < 2; ++pipeline) {
      atl::parallel_for(0L, per_pipeline, [&](long) { ++morsels; }, 1);
    }
    ended = true;
  }
};

class Morsels : public testing::TestWithParam<int> {
 protected:
  atl::Runtime runtime{atl::test::with_workers(GetParam())};
};

TEST_P(Morsels, QueriesBeyondTheBoundWaitAndAllEnd) {
  atl::Semaphore slots(3);
  std::atomic<int> inside{0};
  std::atomic<int> most{0};
  std::vector<std::unique_ptr<Query>> queries;
  std::vector<atl::Task<>> tasks;
  for (int number = 0; number < 40; ++number) {
    Query& query = *queries.emplace_back(std::make_unique<Query>());
    tasks.push_back(runtime.spawn([&] {
      slots.acquire();
      const int now = ++inside;
      for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);) {
      }
      query.run(kMorsels);
      --inside;
      slots.release();
    }));
  }
  for (atl::Task<>& task : tasks) task.join();
  for (const auto& query : queries) EXPECT_EQ(query->morsels, 2 * kMorsels);
  EXPECT_LE(most, 3);
}

TEST_P(Morsels, AQueryThatIsCancelledLeavesTheRestOutAndTheOthersAlone) {
  for (int round = 0; round < 20; ++round) {
    Query endless;
    Query other;
    auto cancelled = runtime.spawn([&] { endless.run(1L << 40); });
    auto runs = runtime.spawn([&] { other.run(kMorsels); });
    if (round % 2 == 0) {  // else maybe before it has begun
      while (endless.morsels < 10) std::this_thread::yield();
    }
    cancelled.request_stop();
    EXPECT_THROW(cancelled.join(), atl::Stopped);
    EXPECT_FALSE(endless.ended);
    runs.join();
    EXPECT_EQ(other.morsels, 2 * kMorsels);
  }
}

TEST_P(Morsels, AHandleThatGoesCancelsItsQuery) {
  Query endless;
  {
    const atl::Task<> query = runtime.spawn([&] { endless.run(1L << 40); });
    while (endless.morsels < 10) std::this_thread::yield();
  }
  const long morsels = endless.morsels;
  runtime.run([] { atl::yield(); });
  EXPECT_EQ(endless.morsels, morsels) << "a morsel ran after the query had gone";
}

TEST_P(Morsels, ALimitOfTimeEndsTheQueryAndTheNextOneRuns) {
  for (int round = 0; round < 10; ++round) {
    Query endless;
    Query next;
    runtime.run([&] {
      EXPECT_THROW(
          {
            const atl::Stoppable limit(1ms);
            endless.run(1L << 40);
          },
          atl::Stopped);
      next.run(kMorsels);
    });
    EXPECT_EQ(next.morsels, 2 * kMorsels);
  }
}

TEST_P(Morsels, AShortQueryBeginsWhileLongOnesHoldAllWorkers) {
  std::vector<std::unique_ptr<Query>> queries;
  std::vector<atl::Task<>> tasks;
  for (int number = 0; number < 2 * runtime.workers(); ++number) {
    Query& query = *queries.emplace_back(std::make_unique<Query>());
    tasks.push_back(runtime.spawn([&] { query.run(1L << 40); }));
  }
  for (int round = 0; round < 20; ++round) {
    Query point;
    runtime.spawn(atl::urgently(), [&] { point.run(1); }).join();
    EXPECT_TRUE(point.ended);
  }
  for (atl::Task<>& task : tasks) task.request_stop();
  for (atl::Task<>& task : tasks) EXPECT_THROW(task.join(), atl::Stopped);
}

TEST_P(Morsels, AMorselThatFailsEndsItsQueryAlone) {
  Query other;
  auto runs = runtime.spawn([&] { other.run(kMorsels); });
  // In every part of the loop: nothing says which part a busy runtime begins with.
  auto fails = runtime.spawn([] {
    atl::parallel_for(0L, 1L << 40, [](long morsel) {
      if (morsel % 1000 == 5) throw std::runtime_error("overflow");
    });
  });
  EXPECT_THROW(fails.join(), std::runtime_error);
  runs.join();
  EXPECT_EQ(other.morsels, 2 * kMorsels);
}

TEST_P(Morsels, AGroupPerQueryThatComesAndGoes) {
  std::vector<std::thread> clients;
  std::atomic<long> morsels{0};
  for (int client = 0; client < 4; ++client) {
    clients.emplace_back([&, client] {
      for (int round = 0; round < 15; ++round) {
        const int threads = 1 + (client + round) % runtime.workers();
        atl::Group group(runtime, {.threads = threads});
        Query query;
        if (round % 3 == 0) {
          auto cancelled = group.spawn([&] { query.run(1L << 40); });
          cancelled.request_stop();
          EXPECT_THROW(cancelled.join(), atl::Stopped);
        } else {
          group.run([&] { query.run(50); });
          morsels += query.morsels;
        }
      }
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(morsels, 4 * 10 * 100);
}

INSTANTIATE_TEST_SUITE_P(Workers, Morsels, testing::Values(1, 2, 8));

}  // namespace
