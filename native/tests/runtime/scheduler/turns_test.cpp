// Every task gets its turn within a bound that is counted in turns of the worker that begins it, on
// 64 workers that are kept busy for ever: however slow the machine, and however many CPUs it has.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "atoll/runtime/event.hpp"
#include "atoll/runtime/group.hpp"
#include "atoll/runtime/runtime.hpp"
#include "atoll/runtime/this_task.hpp"
#include "runtime/parts.hpp"

namespace {

constexpr int kManyWorkers = 64;
// A worker looks at what others would leave waiting in every 64th turn, and there at each of three
// sources first in turn. A turn of a busy task is one of the worker, or more.
constexpr long kMostTurns = 64 * 3;

// Keeps each worker of a runtime busy, with pairs of tasks that wake each other or that yield, and
// counts the turns that they take.
class Busy {
 public:
  explicit Busy(atl::Runtime& runtime) {
    for (int worker = 0; worker < runtime.workers(); ++worker) {
      tasks_.push_back(runtime.spawn(atl::on_worker(worker), [this, worker] {
        ++begun_;
        if (worker % 2 == 0) {
          wake_each_other();
        } else {
          yield_to_each_other();
        }
      }));
    }
    while (begun_ < runtime.workers()) std::this_thread::yield();
  }
  ~Busy() {
    stop_ = true;
    for (atl::Task<>& task : tasks_) task.join();
  }

  using Turns = std::array<long, kManyWorkers>;
  Turns turns() const {
    Turns now{};
    for (std::size_t at = 0; at < now.size(); ++at) now[at] = turns_[at];
    return now;
  }
  long turns_here() const { return turns_[static_cast<std::size_t>(atl::this_task::worker())]; }

 private:
  void count_turn() {
    const long turns = ++turns_[static_cast<std::size_t>(atl::this_task::worker())];
    // There are fewer CPUs than workers: let the next thread have this one.
    if (turns % 128 == 0) std::this_thread::yield();
  }

  void wake_each_other() {
    atl::Event ping;
    atl::Event pong;
    auto other = atl::spawn([&] {
      while (!stop_) {
        ping.wait();
        ping.reset();
        count_turn();
        pong.set();
      }
      pong.set();
    });
    while (!stop_) {
      ping.set();
      pong.wait();
      pong.reset();
      count_turn();
    }
    ping.set();
    other.join();
  }

  void yield_to_each_other() {
    const auto yields = [&] {
      while (!stop_) {
        count_turn();
        atl::yield();
      }
    };
    auto other = atl::spawn(yields);
    yields();
    other.join();
  }

  std::atomic<bool> stop_{false};
  std::atomic<int> begun_{0};
  std::array<std::atomic<long>, kManyWorkers> turns_{};
  std::vector<atl::Task<>> tasks_;
};

class Turns : public testing::Test {
 protected:
  static atl::RuntimeOptions options() {
    atl::RuntimeOptions options;
    options.workers = kManyWorkers;
    options.places = atl::synthetic_places("node:2 chiplet:8 core:8", atl::test::real_cpus());
    options.approach = "static-distributed";
    return options;
  }

  // How many turns its worker took after `make` had made the task. `make(body)` begins `body`
  // somehow, and returns what to join.
  template <class Make>
  long turns_until(Make&& make) {
    struct Begun {
      int worker;
      long turns;
    };
    std::atomic<bool> made{false};
    Busy::Turns before{};
    // Its worker may begin it before the turns are read: then the wait below is not counted.
    auto task = make([&, this] {
      const Begun begun{atl::this_task::worker(), busy.turns_here()};
      while (!made) atl::yield();
      return begun;
    });
    before = busy.turns();
    made = true;
    const Begun begun = task.join();
    return begun.turns - before[static_cast<std::size_t>(begun.worker)];
  }

  template <class Make>
  void each_begins_within_the_bound(Make&& make) {
    for (int round = 0; round < 20; ++round) EXPECT_LE(turns_until(make), kMostTurns) << round;
  }

  atl::Runtime runtime{options()};
  Busy busy{runtime};
};

TEST_F(Turns, ATaskFromOutside) {
  each_begins_within_the_bound([&](auto body) { return runtime.spawn(std::move(body)); });
}

TEST_F(Turns, ATaskFromOutsideForEachWorker) {
  for (int worker = 0; worker < kManyWorkers; worker += 3) {
    EXPECT_LE(turns_until([&](auto body) {
                return runtime.spawn(atl::on_worker(worker), std::move(body));
              }),
              kMostTurns)
        << worker;
  }
}

TEST_F(Turns, ATaskForAChipletOrANode) {
  for (int chiplet = 0; chiplet < 16; ++chiplet) {
    EXPECT_LE(turns_until([&](auto body) {
                return runtime.spawn(atl::on_chiplet(chiplet), std::move(body));
              }),
              kMostTurns)
        << chiplet;
  }
  for (int node = 0; node < 2; ++node) {
    each_begins_within_the_bound(
        [&](auto body) { return runtime.spawn(atl::on_node(node), std::move(body)); });
  }
}

TEST_F(Turns, ATaskOfAGroup) {
  for (const int threads : {1, 5, 64}) {
    atl::Group group(runtime, {.threads = threads, .approach = "static-local"});
    each_begins_within_the_bound([&](auto body) { return group.spawn(std::move(body)); });
  }
}

// The older task lies below the newest ones, in the deque of its worker.
TEST_F(Turns, AnOlderTaskOfABusyWorker) {
  for (int worker = 0; worker < kManyWorkers; worker += 7) {
    runtime.run([&] {
      atl::call(atl::on_worker(worker), [&] {
        each_begins_within_the_bound([&](auto body) { return atl::spawn(std::move(body)); });
      });
    });
  }
}

// A task that yields comes back: each time within the bound, counted by the others of its worker.
TEST_F(Turns, ATaskThatYields) {
  for (int worker = 0; worker < kManyWorkers; worker += 7) {
    runtime
        .spawn(atl::on_worker(worker),
               [&] {
                 for (int round = 0; round < 50; ++round) {
                   const long before = busy.turns_here();
                   atl::yield();
                   EXPECT_LE(busy.turns_here() - before, kMostTurns) << worker;
                 }
               })
        .join();
  }
}

// What is in one shared queue does not wait until another one has run empty.
TEST(TurnsOfQueues, EachSharedQueueHasItsTurns) {
  atl::RuntimeOptions options = atl::test::with_workers(1);
  atl::Runtime runtime(options);
  atl::Group first(runtime, {.threads = 1});
  atl::Group second(runtime, {.threads = 1});
  const std::vector<std::pair<std::string, atl::Place>> places = {
      {"anywhere", {}},
      {"chiplet", atl::on_chiplet(0)},
      {"node", atl::on_node(0)},
      {"a group", first.place()},
      {"another group", second.place()}};
  // The worker serves those of all places, as there is no other, of both groups, and of itself.
  const int queues =
      1 + runtime.places().chiplets() + static_cast<int>(runtime.places().nodes().size()) + 2 + 1;
  for (const auto& [full, many] : places) {
    for (const auto& [name, one] : places) {
      if (full == name) continue;
      std::atomic<bool> held{false};
      std::atomic<bool> go{false};
      auto holds = runtime.spawn([&] {
        held = true;
        while (!go) std::this_thread::yield();
      });
      while (!held) std::this_thread::yield();
      std::atomic<int> ran{0};
      for (int i = 0; i < 2000; ++i) runtime.spawn(many, [&] { ++ran; }).detach();
      auto task = runtime.spawn(one, [&] { return ran.load(); });
      go = true;
      EXPECT_LE(task.join(), 2 * queues) << name << " behind " << full;
      holds.join();
      while (ran < 2000) std::this_thread::yield();
    }
  }
}

}  // namespace
