// Everything at once, for a given time: spawn storms, steals, exceptions, cancels, placed calls,
// barriers, thousands of suspended tasks, two runtimes, and workers and groups that are moved
// meanwhile. Every round's answer is known and checked.
//
//   runtime-stress [SECONDS [SEED]]
//
// Prints what it did; at the first wrong answer exits with 1 and the seed to repeat the run.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "atoll/runtime/barrier.hpp"
#include "atoll/runtime/event.hpp"
#include "atoll/runtime/fork.hpp"
#include "atoll/runtime/group.hpp"
#include "atoll/runtime/mutex.hpp"
#include "atoll/runtime/runtime.hpp"
#include "atoll/runtime/scope.hpp"
#include "atoll/runtime/sleep.hpp"
#include "atoll/runtime/this_task.hpp"
#include "runtime/parts.hpp"

namespace {

using Random = std::mt19937_64;
using Clock = std::chrono::steady_clock;

struct Wrong : std::runtime_error {
  using std::runtime_error::runtime_error;
};

void expect(bool right, const char* what) {
  if (!right) throw Wrong(what);
}

struct Child : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A ragged tree: the number of its leaves, counted by forks that now and then yield or throw.
long leaves(std::uint64_t seed, int depth, bool throws) {
  if (depth == 0) {
    if (throws && seed % 64 == 0) throw Child("leaf");
    return 1;
  }
  if (seed % 16 == 0) atl::yield();
  auto left = atl::fork([=] { return leaves(seed * 3 + 1, depth - 1, throws); });
  const long right = seed % 5 == 0 ? 1 : leaves(seed * 5 + 2, depth - 1, throws);
  return left.join() + right;
}

long leaves_alone(std::uint64_t seed, int depth) {
  if (depth == 0) return 1;
  const long right = seed % 5 == 0 ? 1 : leaves_alone(seed * 5 + 2, depth - 1);
  return leaves_alone(seed * 3 + 1, depth - 1) + right;
}

void fork_tree(Random& random) {
  const std::uint64_t seed = random();
  expect(leaves(seed, 9, false) == leaves_alone(seed, 9), "fork_tree: leaves");
}

void exceptions(Random& random) {
  const std::uint64_t seed = random();
  try {
    expect(leaves(seed, 8, true) == leaves_alone(seed, 8), "exceptions: leaves");
  } catch (const Child&) {
    expect(std::uncaught_exceptions() == 0, "exceptions: one is still in flight");
  }
}

void spawn_storm(Random& random) {
  std::atomic<long> sum{0};
  const auto count = static_cast<long>(random() % 3000);
  {
    atl::Scope scope;
    for (long i = 0; i < count; ++i) {
      scope.fork([&sum, i] {
        if (i % 11 == 0) atl::yield();
        sum += i;
      });
    }
    scope.join();
  }
  expect(sum == count * (count - 1) / 2, "spawn_storm: sum");
}

void cancels(Random& random) {
  std::vector<atl::Task<int>> tasks;
  for (int i = 0; i < 20; ++i) {
    tasks.push_back(atl::spawn([] {
      int turns = 0;
      while (!atl::this_task::stop_token().stop_requested()) {
        ++turns;
        atl::yield();
      }
      return turns;
    }));
  }
  if (random() % 2 == 0) {
    for (auto& task : tasks) task.request_stop();
    for (auto& task : tasks) expect(task.join() >= 0, "cancels: turns");
  }  // else the handles do it
}

void placed(Random& random, atl::Runtime& runtime) {
  const int chiplets = runtime.places().chiplets();
  const int chiplet = static_cast<int>(random() % static_cast<unsigned>(chiplets));
  const int twice = atl::call(atl::on_chiplet(chiplet), [chiplet] {
    atl::yield();
    return 2 * chiplet;
  });
  expect(twice == 2 * chiplet, "placed: value");
}

void barriers(Random&) {
  constexpr int kParties = 5;
  constexpr int kRounds = 20;
  atl::Barrier barrier(kParties);
  std::atomic<int> arrived{0};
  std::atomic<bool> early{false};
  atl::Scope scope;
  for (int party = 0; party < kParties; ++party) {
    scope.fork([&] {
      for (int round = 1; round <= kRounds; ++round) {
        ++arrived;
        barrier.arrive_and_wait();
        if (arrived < round * kParties) early = true;
        barrier.arrive_and_wait();
      }
    });
  }
  scope.join();
  expect(!early && arrived == kParties * kRounds, "barriers: somebody came through early");
}

// Thousands of stacks at a time, all suspended at once and all set free at once.
void exhaustion(Random& random) {
  const int count = 500 + static_cast<int>(random() % 3000);
  atl::Event gate;
  std::atomic<int> through{0};
  std::vector<atl::Task<>> tasks;
  for (int i = 0; i < count; ++i) {
    tasks.push_back(atl::spawn([&] {
      gate.wait();
      ++through;
    }));
  }
  for (int i = 0; i < 10; ++i) atl::yield();
  gate.set();
  for (auto& task : tasks) task.join();
  expect(through == count, "exhaustion: not all came through");
}

void mutual_exclusion(Random&) {
  atl::Mutex mutex;
  long plain = 0;
  atl::Scope scope;
  for (int i = 0; i < 50; ++i) {
    scope.fork([&] {
      for (int j = 0; j < 20; ++j) {
        const std::lock_guard lock(mutex);
        const long before = plain;
        if (j % 8 == 0) atl::yield();
        plain = before + 1;
      }
    });
  }
  scope.join();
  expect(plain == 1000, "mutual_exclusion: count");
}

void sleeps(Random& random) {
  const std::chrono::microseconds nap(random() % 2000);
  const Clock::time_point before = Clock::now();
  atl::sleep_for(nap);
  expect(Clock::now() - before >= nap, "sleeps: woke early");
}

struct Done {
  std::atomic<long> rounds{0};
  std::atomic<long> moves{0};
};

void one_round(std::uint64_t seed, atl::Runtime& runtime) {
  Random random(seed);
  switch (random() % 9) {
    case 0: return fork_tree(random);
    case 1: return exceptions(random);
    case 2: return spawn_storm(random);
    case 3: return cancels(random);
    case 4: return placed(random, runtime);
    case 5: return barriers(random);
    case 6: return exhaustion(random);
    case 7: return mutual_exclusion(random);
    default: return sleeps(random);
  }
}

// Rounds from a thread of its own, on the runtime or in a group.
template <class Where>
void rounds(Where& where, atl::Runtime& runtime, std::uint64_t seed, Clock::time_point end,
            Done& done) {
  Random random(seed);
  while (Clock::now() < end) {
    const std::uint64_t next = random();
    try {
      where.run([&] { one_round(next, runtime); });
    } catch (const Wrong& wrong) {
      std::printf("runtime-stress: WRONG: %s (seed of the round: %llu)\n", wrong.what(),
                  static_cast<unsigned long long>(next));
      std::_Exit(1);
    }
    ++done.rounds;
  }
}

void move_about(atl::Runtime& runtime, atl::Group& group, std::uint64_t seed, Clock::time_point end,
                Done& done) {
  Random random(seed);
  while (Clock::now() < end) {
    const int spread = 1 + static_cast<int>(random() % 4);
    try {
      if (random() % 2 == 0) {
        runtime.set_spread(spread);
      } else {
        group.set_spread(spread);
      }
      ++done.moves;
    } catch (const atl::RuntimeFault&) {
      // Out of what is possible just now.
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 5));
  }
}

}  // namespace

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 5;
  const std::uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  const Clock::time_point end = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                                   std::chrono::duration<double>(seconds));
  std::printf("runtime-stress: %g s, seed %llu\n", seconds, static_cast<unsigned long long>(seed));

  Done done;
  atl::RuntimeOptions options = atl::test::with_workers(5);
  options.approach = atl::kDefaultApproach;  // which moves workers by itself
  options.interval = std::chrono::milliseconds(2);
  atl::Runtime runtime(options);
  atl::Runtime crowded(atl::test::with_workers(12));  // more workers than cores
  {
    atl::Group group(runtime, {.threads = 2});
    std::vector<std::jthread> threads;
    threads.emplace_back([&] { rounds(runtime, runtime, seed, end, done); });
    threads.emplace_back([&] { rounds(runtime, runtime, seed + 1, end, done); });
    threads.emplace_back([&] { rounds(group, runtime, seed + 2, end, done); });
    threads.emplace_back([&] { rounds(crowded, crowded, seed + 3, end, done); });
    threads.emplace_back([&] { move_about(runtime, group, seed + 4, end, done); });
  }

  atl::Counts sum;
  for (const auto* each : {&runtime, &crowded}) {
    for (const atl::Counts& counts : each->counts()) {
      atl::for_each_count([](const char*, std::uint64_t& to, std::uint64_t from) { to += from; },
                          sum, counts);
    }
  }
  std::printf("%ld rounds, all right; %ld times moved\n", done.rounds.load(), done.moves.load());
  atl::for_each_count(
      [](const char* name, std::uint64_t count) {
        std::printf("  %-18s %llu\n", name, static_cast<unsigned long long>(count));
      },
      sum);
}
