// The runtime on a real kernel with many nodes and chiplets; tests/vm/test_runtime.py runs and
// judges it.
//
//   runtime_workers_guest CASE [ARG...]
//
// Prints looks (look.hpp) and, as `said ...`, what the runtime reports about itself.

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "atoll/runtime/array.hpp"
#include "atoll/runtime/fork.hpp"
#include "atoll/runtime/group.hpp"
#include "atoll/runtime/parallel.hpp"
#include "atoll/runtime/runtime.hpp"
#include "atoll/runtime/task.hpp"
#include "atoll/runtime/this_task.hpp"
#include "look.hpp"
#include "made_up_fills.hpp"

namespace {

using Clock = std::chrono::steady_clock;

// Long enough for an emulated machine on a busy host; a late state is printed as it is.
constexpr std::chrono::seconds kPatience(60);

template <class Numbers>
std::string joined(const Numbers& numbers) {
  std::string text;
  for (const auto& number : numbers) text += (text.empty() ? "" : ",") + std::to_string(number);
  return text;
}

void say_places(const atl::Places& places) {
  for (const atl::Core& core : places.cores) {
    std::cout << "said core " << joined(core.cpus) << " chiplet " << core.chiplet << " node "
              << core.node << " package " << core.package << '\n';
  }
}

// An array that is partitioned by worker, summed over and over by all of them.
class Work {
 public:
  // Tells the worker and the time of each piece, if anybody wants to know.
  using Told = std::function<void(int worker, std::chrono::nanoseconds)>;

  explicit Work(const atl::Runtime& runtime)
      : values_(atl::Array<std::uint64_t>::partitioned(kValues, runtime.node_map())) {
    std::iota(values_.begin(), values_.end(), std::uint64_t{0});
  }

  void round(atl::Runtime& runtime, const Told& told = {}) {
    const std::uint64_t sum = runtime.run([&] {
      return atl::parallel_reduce(
          std::size_t{0}, kValues, std::uint64_t{0},
          [&](std::size_t first, std::size_t last) {
            const auto begin = Clock::now();
            const std::uint64_t part =
                std::accumulate(values_.data() + first, values_.data() + last, std::uint64_t{0});
            if (told) told(atl::this_task::worker(), Clock::now() - begin);
            return part;
          },
          std::plus<>(), kPiece);
    });
    ++(sum == std::uint64_t{kValues} * (kValues - 1) / 2 ? right_ : wrong_);
  }

  // Works until it is so, but not for ever.
  void until(atl::Runtime& runtime, const std::function<bool()>& done, const Told& told = {}) {
    const auto deadline = Clock::now() + kPatience;
    do {
      round(runtime, told);
    } while (!done() && Clock::now() < deadline);
  }

  // Pages come after the workers: waits for that.
  void await_pages(const atl::Runtime& runtime) const {
    std::map<int, std::size_t> expected;
    const std::vector<int> nodes = runtime.node_map().node_of_rank;
    for (int rank = 0; rank < values_.parts(); ++rank) {
      expected[nodes[static_cast<std::size_t>(rank)]] += values_.part(rank).size_bytes();
    }
    const auto deadline = Clock::now() + kPatience;
    while (values_.pages_found().bytes_by_node != expected && Clock::now() < deadline) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }

  void look(const std::string& label, atl::Runtime& runtime) const {
    await_pages(runtime);
    guest::look(label, runtime, [&] {
      for (int rank = 0; rank < values_.parts(); ++rank) {
        guest::print_range("part" + std::to_string(rank), values_.part(rank).data(),
                           values_.part(rank).size_bytes());
      }
    });
    std::cout << "said rounds right " << right_ << " wrong " << wrong_ << '\n';
  }

 private:
  static constexpr std::size_t kValues = std::size_t{1} << 18;  // 2 MiB
  static constexpr std::size_t kPiece = std::size_t{1} << 12;
  atl::Array<std::uint64_t> values_;
  long right_ = 0;
  long wrong_ = 0;
};

int chiplets_of(const atl::Places& places, std::span<const int> cores) {
  std::set<int> chiplets;
  for (const int core : cores) {
    chiplets.insert(places.cores[static_cast<std::size_t>(core)].chiplet);
  }
  return static_cast<int>(chiplets.size());
}

void seats() {
  atl::Runtime runtime;
  say_places(runtime.places());
  for (const auto& levels : runtime.places().chiplet_levels) {
    std::cout << "said levels " << joined(levels) << '\n';
  }
  const std::vector<int> cores = runtime.cores();
  std::cout << "said cores " << joined(cores) << '\n';
  for (int thief = 0; thief < runtime.workers(); ++thief) {
    const atl::VictimOrder order = atl::victims(runtime.places(), cores, thief);
    std::cout << "said victims " << thief;
    for (const atl::VictimRing& ring : order.rings) {
      std::cout << ' ' << static_cast<int>(ring.distance) << ':' << joined(order.of(ring));
    }
    std::cout << '\n';
  }
  Work work(runtime);
  work.round(runtime);
  work.look("seated", runtime);
}

void steered() {
  constexpr int kWorkers = 8;
  guest::MadeUpFills fills(kWorkers);
  const auto approach = std::make_shared<guest::TellsFills>(fills);
  atl::Runtime runtime({.workers = kWorkers,
                        .own_approach = approach,
                        .interval = std::chrono::milliseconds(40),
                        .fills = [&](int worker) { return fills.read(worker); }});
  Work work(runtime);
  const auto go = [&](guest::MadeUpFills::Wants wants, int goal) {
    fills.want(wants, goal);
    work.until(
        runtime, [&] { return chiplets_of(runtime.places(), runtime.cores()) == goal; },
        [&](int worker, std::chrono::nanoseconds busy) { fills.worked(worker, busy); });
    std::cout << "said spread " << runtime.spread() << ": " << approach->why() << '\n';
    work.look(std::to_string(goal), runtime);
  };
  using enum guest::MadeUpFills::Wants;
  go(cache, 4);
  go(cache, 6);
  go(cache, 8);
  go(nearness, 6);
  go(nearness, 4);
}

// CPUs on which a worker was.
class CpusSeen {
 public:
  void here() { seen_[static_cast<std::size_t>(sched_getcpu())] = true; }
  std::set<int> all() const {
    std::set<int> cpus;
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (seen_[static_cast<std::size_t>(cpu)]) cpus.insert(cpu);
    }
    return cpus;
  }

 private:
  std::array<std::atomic<bool>, CPU_SETSIZE> seen_{};
};

// Of this process's threads, besides the one that asks.
int runnable_threads() {
  int count = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    if (task.path().filename() == std::to_string(gettid())) continue;
    count += guest::value_in(task.path() / "status", "State:") == "R" ? 1 : 0;
  }
  return count;
}

// Waits until only `awake` workers are awake, for several looks in a row. On a busy host that takes
// time: a worker that waits for a CPU is still awake.
void await_sleep(int awake) {
  constexpr int kLooks = 10;
  const auto deadline = Clock::now() + kPatience;
  for (int quiet = 0; quiet < kLooks && Clock::now() < deadline;) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    quiet = runnable_threads() <= awake ? quiet + 1 : 0;
  }
}

// What the threads' times grow by while each member is in a task of its own. Nobody steals then, so
// nobody is woken to look for work either.
void busy_members(atl::Group& group, int threads, CpusSeen& seen) {
  // The new spread has woken all; they shall sleep again first.
  await_sleep(0);
  std::atomic<int> inside{0};
  std::atomic<bool> over{false};
  std::vector<atl::Task<>> tasks;
  for (int task = 0; task < threads; ++task) {
    tasks.push_back(group.spawn([&] {
      ++inside;
      while (!over) seen.here();
    }));
  }
  const auto deadline = Clock::now() + kPatience;
  while (inside < threads && Clock::now() < deadline) std::this_thread::yield();
  await_sleep(threads);
  guest::look("begin");
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  guest::look("end");
  over = true;
  for (auto& task : tasks) task.join();
}

void stealing_members(atl::Group& group, CpusSeen& seen) {
  group.run([&] {
    for (int times = 0; times < 10; ++times) {
      atl::parallel_for(0, 64, [&](int) { seen.here(); }, 1);
    }
  });
}

void groups() {
  constexpr int kThreads = 4;
  atl::Runtime runtime;
  atl::Group group(runtime, {.threads = kThreads});
  guest::look("ranks", runtime, [] {});
  for (const int spread : {1, 2, 4, 2, 1}) {
    group.set_spread(spread);
    CpusSeen seen;
    busy_members(group, kThreads, seen);
    stealing_members(group, seen);
    std::cout << "said group " << spread << ' ' << joined(group.workers()) << ' '
              << joined(seen.all()) << '\n';
  }
  try {
    group.set_spread(5);
  } catch (const atl::RuntimeFault& fault) {
    std::cout << "said fault " << fault.what() << '\n';
  }
}

// The process is in a cgroup whose file of CPUs is the argument; each word after it is written
// there.
void limits(std::span<const std::string> words) {
  atl::Runtime runtime;
  Work work(runtime);
  work.round(runtime);
  work.look("whole", runtime);
  for (const std::string& cpus : words.subspan(1)) {
    const std::vector<int> cores_before = runtime.cores();
    std::ofstream(words[0]) << cpus << std::flush;
    work.until(runtime, [&] { return runtime.cores() != cores_before; });
    for (int times = 0; times < 10; ++times) work.round(runtime);
    work.look(cpus, runtime);
  }
}

void say_steals(const atl::Runtime& runtime) {
  int rank = 0;
  for (const atl::Counts& counts : runtime.counts()) {
    std::cout << "said steals " << rank++ << ' ' << joined(counts.steals) << '\n';
  }
}

// One thief (rank 1) beside three workers that have tasks in their deques and run none of them: one
// on its chiplet, one in its node, one in another node.
void thief() {
  constexpr int kTasks = 50;
  constexpr int kThief = 1;
  const atl::Places all = atl::places_here();
  const std::array cores{0, 1, 2, static_cast<int>(all.cores.size()) - 1};
  atl::Runtime runtime({.places = atl::restrict_to_cores(all, cores)});
  say_places(runtime.places());
  std::cout << "said cores " << joined(runtime.cores()) << '\n';
  std::atomic<int> held_workers{0};
  std::atomic<int> ready{0};
  std::atomic<int> done{0};
  std::array<std::atomic<int>, 3 * kTasks> order{};  // whose task was run at which turn
  const auto await = [](const std::atomic<int>& number, int wanted) {
    const auto deadline = Clock::now() + kPatience;
    while (number < wanted && Clock::now() < deadline) std::this_thread::yield();
  };
  std::vector<atl::Task<>> held;
  for (int task = 0; task < 4; ++task) {
    // Tasks for any worker, as only their children go to their worker's deque. Each is on another
    // worker, since none ends before all have begun.
    held.push_back(runtime.spawn([&] {
      ++held_workers;
      await(held_workers, 4);  // before there is anything to steal
      const int producer = atl::this_task::worker();
      if (producer == kThief) return await(ready, 3);
      std::vector<atl::Task<>> tasks;
      for (int child = 0; child < kTasks; ++child) {
        tasks.push_back(
            atl::spawn([&, producer] { order[static_cast<std::size_t>(done++)] = producer; }));
      }
      ++ready;
      await(done, 3 * kTasks);
    }));
  }
  for (auto& task : held) task.join();
  std::cout << "said order " << joined(std::vector<int>(order.begin(), order.end())) << '\n';
  say_steals(runtime);
}

long leaves(int depth) {
  if (depth == 0) {
    volatile int turns = 20'000;
    while (turns > 0) turns = turns - 1;
    return 1;
  }
  auto left = atl::fork([depth] { return leaves(depth - 1); });
  const long right = leaves(depth - 1);
  return left.join() + right;
}

// One core offers work: first now and then a piece, for which one thief is enough, then trees. A
// thief takes half of what it finds, so one tree has few steals: too few to compare distances.
void steals() {
  constexpr int kPieces = 40;
  constexpr int kTrees = 100;
  atl::Runtime runtime;
  std::cout << "said cores " << joined(runtime.cores()) << '\n';
  const auto deadline = Clock::now() + kPatience;
  std::atomic<int> begun{0};
  std::vector<atl::Task<>> held;
  for (int task = 0; task < runtime.workers(); ++task) {
    // One on each worker, as none goes on before all have begun. Worker 0 then produces.
    held.push_back(runtime.spawn([&] {
      ++begun;
      while (begun < runtime.workers() && Clock::now() < deadline) std::this_thread::yield();
      if (atl::this_task::worker() != 0) return;
      for (int times = 0; times < kPieces; ++times) {
        // Until all the others sleep.
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        auto child = atl::spawn([] {});
        while (!child.done() && Clock::now() < deadline) std::this_thread::yield();
        child.join();
      }
    }));
  }
  for (auto& task : held) task.join();
  say_steals(runtime);
  for (int tree = 0; tree < kTrees; ++tree) {
    auto producer = runtime.spawn([] { return leaves(10); });
    std::cout << "said leaves " << producer.join() << '\n';
  }
  say_steals(runtime);
}

}  // namespace

int main(int count, char** words) {
  const std::vector<std::string> arguments(words + 1, words + count);
  const std::map<std::string, std::function<void()>> cases{
      {"seats", seats},   {"steered", steered},
      {"groups", groups}, {"limits", [&] { limits(std::span(arguments).subspan(1)); }},
      {"thief", thief},   {"steals", steals},
  };
  cases.at(arguments.at(0))();
}
