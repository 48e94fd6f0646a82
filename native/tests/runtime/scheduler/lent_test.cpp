// Workers lent to an engine: placed, moved, unbound, watched; they run no tasks of ours.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "atoll/runtime/runtime.hpp"
#include "runtime/parts.hpp"
#include "scheduler/affinity.hpp"

namespace {

std::atomic<int> threads_left{-1};  // that may be started; below 0: any number

}  // namespace

// In place of the C library's.
extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                              void* (*main)(void*), void* argument) {
  static const auto create =
      reinterpret_cast<decltype(&pthread_create)>(dlsym(RTLD_NEXT, "pthread_create"));
  if (threads_left == 0) return EAGAIN;
  if (threads_left > 0) --threads_left;
  return create(thread, attributes, main, argument);
}

namespace {

using atl::test::real_cpus;
using atl::test::with_workers;

// An engine with a queue of its own: its workers wait until they may go.
class Engine {
 public:
  void work(int worker) {
    std::unique_lock lock(mutex_);
    threads[worker] = atl::runtime::this_thread();
    arrived_.notify_all();
    gone_.wait(lock, [this] { return over_; });
  }
  void await(std::size_t workers) {
    std::unique_lock lock(mutex_);
    arrived_.wait(lock, [&] { return threads.size() == workers; });
  }
  void let_go() {
    const std::lock_guard lock(mutex_);
    over_ = true;
    gone_.notify_all();
  }

  std::map<int, int> threads;  // worker -> the kernel's number
  std::atomic<bool> busy{false};
  std::atomic<int> asked{0};
  std::vector<std::vector<int>> places;  // the cores of each call of `placed`
  std::map<int, std::vector<int>> cpus;  // of a core's seat

 private:
  std::mutex mutex_;
  std::condition_variable arrived_, gone_;
  bool over_ = false;
};

// Asks for what the test says.
class Wanted : public atl::Approach {
 public:
  std::string name() const override { return "wanted"; }
  std::atomic<int> spread{1};

 protected:
  atl::Decision decide(const atl::Sample&) override { return {spread, "wanted"}; }
};

class Lent : public testing::Test {
 protected:
  // Four workers on four chiplets of two cores.
  void start(bool share_chiplets = false) {
    atl::RuntimeOptions options = with_workers(4);
    options.own_approach = wanted_;
    options.interval = std::chrono::milliseconds(1);
    options.lent = atl::LentWorkers{[this](int worker) { engine_.work(worker); },
                                    [this] {
                                      ++engine_.asked;
                                      return engine_.busy.load();
                                    },
                                    [this](std::span<const atl::Seat> seats) {
                                      engine_.places.emplace_back();
                                      for (const atl::Seat& seat : seats) {
                                        engine_.places.back().push_back(seat.core);
                                        engine_.cpus[seat.core] = seat.cpus;
                                      }
                                    },
                                    share_chiplets};
    runtime_ = std::make_unique<atl::Runtime>(options);
    engine_.await(4);
  }
  ~Lent() override { engine_.let_go(); }

  int chiplets() const {
    std::set<int> chiplets;
    for (const int core : runtime_->cores()) {
      chiplets.insert(runtime_->places().cores[static_cast<std::size_t>(core)].chiplet);
    }
    return static_cast<int>(chiplets.size());
  }

  Engine engine_;
  std::shared_ptr<Wanted> wanted_ = std::make_shared<Wanted>();
  std::unique_ptr<atl::Runtime> runtime_;
};

TEST_F(Lent, EachWorkerRunsTheEnginesCodeBoundToItsCore) {
  start();
  EXPECT_EQ(engine_.threads.size(), 4U);
  const std::vector<int> cores = runtime_->cores();
  for (const auto& [worker, thread] : engine_.threads) {
    const auto core = static_cast<std::size_t>(cores[static_cast<std::size_t>(worker)]);
    EXPECT_EQ(atl::runtime::cpus_of_thread(thread), runtime_->places().cores[core].cpus);
  }
}

TEST_F(Lent, WhoLooksHasTheWorkersMovedWhenItReturns) {
  start();
  EXPECT_EQ(engine_.places.back(), runtime_->cores()) << "told before the constructor returned";
  for (const int spread : {4, 2, 3}) {
    wanted_->spread = spread;
    runtime_->look();
    EXPECT_EQ(chiplets(), spread);
    EXPECT_EQ(engine_.places.back(), runtime_->cores());
    for (const auto& [worker, thread] : engine_.threads) {
      const auto core =
          static_cast<std::size_t>(runtime_->cores()[static_cast<std::size_t>(worker)]);
      EXPECT_EQ(atl::runtime::cpus_of_thread(thread), runtime_->places().cores[core].cpus);
    }
  }
}

TEST_F(Lent, AMoveSeatsTheWorkersOnce) {
  start();
  const std::size_t before = engine_.places.size();
  runtime_->set_spread(3);
  runtime_->set_spread(2);
  EXPECT_EQ(engine_.places.size(), before + 2);
}

// An engine may answer late, or ask the runtime first.
TEST(LentSlowly, TheRuntimeAnswersWhileItAsksTheEngine) {
  Engine engine;
  std::atomic<bool> asked{false};
  std::atomic<bool> answered{false};
  std::atomic<bool> in_time{true};
  atl::RuntimeOptions options = with_workers(2);
  options.interval = std::chrono::milliseconds(1);
  options.lent = atl::LentWorkers{[&](int worker) { engine.work(worker); },
                                  [&] {
                                    asked = true;
                                    in_time =
                                        in_time && atl::test::soon([&] { return answered.load(); });
                                    return true;
                                  },
                                  [](std::span<const atl::Seat>) {}};
  atl::Runtime runtime(options);
  EXPECT_TRUE(atl::test::soon([&] { return asked.load(); }));
  runtime.look();
  runtime.set_spread(2);
  EXPECT_EQ(runtime.spread(), 2);
  answered = true;
  engine.let_go();
  EXPECT_TRUE(in_time);
}

TEST_F(Lent, WhileTheEngineIsBusyTheApproachIsAskedByItself) {
  start();
  engine_.busy = true;
  wanted_->spread = 4;
  runtime_->look();  // from now on at each interval
  wanted_->spread = 2;
  while (runtime_->spread() != 2) sched_yield();  // the test's time limit is the bound
  EXPECT_GT(engine_.asked, 0);
}

TEST_F(Lent, UnboundTheyMayRunWhereTheProcessMay) {
  start();
  runtime_->set_pin(false);
  for (const auto& [worker, thread] : engine_.threads) {
    EXPECT_EQ(atl::runtime::cpus_of_thread(thread), real_cpus());
  }
  wanted_->spread = 4;
  runtime_->look();  // moves seats, not threads
  for (const auto& [worker, thread] : engine_.threads) {
    EXPECT_EQ(atl::runtime::cpus_of_thread(thread), real_cpus());
  }
  runtime_->set_pin(true);
  for (const auto& [worker, thread] : engine_.threads) {
    const auto core = static_cast<std::size_t>(runtime_->cores()[static_cast<std::size_t>(worker)]);
    EXPECT_EQ(atl::runtime::cpus_of_thread(thread), runtime_->places().cores[core].cpus);
  }
}

TEST_F(Lent, BoundToChipletsTheyHaveAllOfItsCpus) {
  start(true);
  for (const int spread : {2, 4, 2}) {
    wanted_->spread = spread;
    runtime_->look();
    for (const auto& [worker, thread] : engine_.threads) {
      const auto at = static_cast<std::size_t>(worker);
      const int core = runtime_->cores()[at];
      std::set<int> cpus;
      const int chiplet = runtime_->places().cores[static_cast<std::size_t>(core)].chiplet;
      for (const int other : runtime_->places().cores_of_chiplet(chiplet)) {
        const auto& own = runtime_->places().cores[static_cast<std::size_t>(other)].cpus;
        cpus.insert(own.begin(), own.end());
      }
      const std::vector<int> all(cpus.begin(), cpus.end());
      EXPECT_EQ(atl::runtime::cpus_of_thread(thread), all);
      EXPECT_EQ(engine_.cpus[core], all);
    }
  }
}

TEST_F(Lent, ThoseWhoseWorkIsOverStayUntilTheEnd) {
  start();
  engine_.let_go();
  // The runtime looks at them until it ends. Enough time to go, for those that did not stay.
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  for (const auto& [worker, thread] : engine_.threads) {
    EXPECT_EQ(access(("/proc/self/task/" + std::to_string(thread)).c_str(), F_OK), 0) << worker;
  }
}

TEST_F(Lent, WhereTheLastThreadCannotBeHadNobodyIsLetIn) {
  threads_left = 4;  // the workers, not the governor
  EXPECT_THROW(start(), atl::RuntimeFault);
  threads_left = -1;
  EXPECT_TRUE(engine_.threads.empty());
}

TEST_F(Lent, TheyRunNoTasks) {
  start();
  EXPECT_THROW(runtime_->run([] {}), atl::RuntimeFault);
  EXPECT_THROW(static_cast<void>(runtime_->spawn(atl::on_worker(1), [] {})), atl::RuntimeFault);
}

}  // namespace
