// The count of running threads, and of those that were started.
#include "concurrency.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "kernels/running.hpp"

namespace atl::kernels {
namespace {

// `spinning` threads that run and `sleeping` that do not, until it is destroyed.
class Others {
 public:
  Others(int spinning, int sleeping) {
    for (int thread = 0; thread < spinning; ++thread) {
      all_.emplace_back([this] {
        while (!over_) {
        }
      });
    }
    for (int thread = 0; thread < sleeping; ++thread) {
      all_.emplace_back([this] { over_.wait(false); });
    }
  }
  ~Others() {
    over_ = true;
    over_.notify_all();
    for (std::thread& each : all_) each.join();
  }

 private:
  std::atomic<bool> over_{false};
  std::vector<std::thread> all_;
};

TEST(Concurrency, CountsWhoRunsWhileItWatches) {
  Concurrency concurrency;
  const int before = Concurrency::threads();
  const Others others(3, 4);
  EXPECT_EQ(Concurrency::threads(), before + 7);
  EXPECT_TRUE(concurrency.running().empty());
  // On a busy machine it takes a while until the sleeping ones have got a CPU to go to sleep on.
  for (int round = 0; round < 1000; ++round) {
    concurrency.watch(true);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    concurrency.watch(false);
    if (!concurrency.running().empty() && concurrency.running().back() == 3) return;
  }
  FAIL() << concurrency.running().back() << " run, not 3";
}

TEST(Concurrency, AsyncStartsAThreadForEachPieceAndOthersForEachWorker) {
  for (const auto& [scheduler, workers] : teams()) {
    with_team(scheduler, workers, [&](Team& team, const Memory&) {
      team.loop(100, 10, [](std::size_t, std::size_t) {});
      team.each([](int) {});
      EXPECT_EQ(team.ended_threads(), scheduler == "async" ? 10 + workers : 0) << scheduler;
    });
  }
}

TEST(Concurrency, WatchesTheTimedRunsAlone) {
  Concurrency concurrency;
  Conditions conditions{.memory = {}, .runs = 2, .concurrency = &concurrency};
  const auto rest = [](int) { std::this_thread::sleep_for(std::chrono::milliseconds(20)); };
  std::vector<std::size_t> looks;
  time_runs(
      conditions, [&](int) { looks.push_back(concurrency.running().size()); }, rest,
      [&](int) {
        looks.push_back(concurrency.running().size());
        rest(0);
      });
  EXPECT_EQ(looks[0], 0u);
  EXPECT_GT(looks[1], looks[0]);
  EXPECT_EQ(looks[2], looks[1]);
  EXPECT_GT(looks[3], looks[2]);
}

}  // namespace
}  // namespace atl::kernels
