// Random programs on the machine, or on a made-up one: 2 nodes, 16 chiplets and 128 cores, which
// share the CPUs that there are. A program is a tree; a node runs its children by forks, scopes,
// tasks, places, groups, loops, calls from outside, or tasks that wait for each other, and its
// value is its own number plus its children's. Meanwhile workers and groups move, the process's
// mask shrinks to one CPU and grows again, and signals arrive.
//
//   runtime-random-programs [SECONDS [SEED [WORKERS [PLACES]]]]
//
// PLACES: `made-up` (default), or `here`, the machine's own. The value of each program is known. At
// a wrong one, or if a program makes no progress, it prints the seed, which repeats the program as
// the first one, and exits with 1.
#include <dirent.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <random>
#include <stdexcept>
#include <stop_token>
#include <string_view>
#include <thread>
#include <vector>

#include "atoll/runtime.hpp"
#include "runtime/parts.hpp"

namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using Seed = std::uint64_t;
using Value = std::uint64_t;

// Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
Seed mixed(Seed seed) {
  seed += 0x9e3779b97f4a7c15;
  seed = (seed ^ (seed >> 30)) * 0xbf58476d1ce4e5b9;
  seed = (seed ^ (seed >> 27)) * 0x94d049bb133111eb;
  return seed ^ (seed >> 31);
}
Seed child_of(Seed seed, int child) { return mixed(seed + static_cast<Seed>(child) + 1); }
int below(Seed seed, int most) { return static_cast<int>(mixed(~seed) % static_cast<Seed>(most)); }

enum class Op {
  fork,
  scope,
  spawn,
  event,
  barrier,
  latch,
  mutex,
  place,
  loop,
  yield,
  sleep,
  blocking,
  failure,
  stop,
  // Dearer ones, near the root only.
  group,
  outside,
  all_do,
};
constexpr int kCheap = static_cast<int>(Op::group);
constexpr int kOps = static_cast<int>(Op::all_do) + 1;

struct Node {
  Op op;
  int children;
};

Node node_of(Seed seed, int depth) {
  const Op op = static_cast<Op>(below(seed, depth >= 4 ? kOps : kCheap));
  if (depth == 0) return {op, 0};
  switch (op) {
    case Op::fork:
    case Op::event: return {op, 2};
    case Op::barrier: return {op, below(seed + 1, 16) == 0 ? 20 : 2 + below(seed + 1, 2)};
    case Op::place:
    case Op::yield:
    case Op::sleep:
    case Op::blocking:
    case Op::stop:
    case Op::group:
    case Op::outside:
    case Op::all_do: return {op, 1};
    default: return {op, below(seed + 1, 5)};
  }
}

Value known(Seed seed, int depth) {
  Value value = seed;
  const int children = node_of(seed, depth).children;
  for (int child = 0; child < children; ++child) value += known(child_of(seed, child), depth - 1);
  return value;
}

struct Failure {
  Value value;
};

class Program {
 public:
  explicit Program(atl::Runtime& runtime) : runtime_(runtime) {}

  Value node(Seed seed, int depth) {
    const auto [op, count] = node_of(seed, depth);
    if (count == 0) return seed;
    std::vector<Value> values(static_cast<std::size_t>(count));
    // Adds, so that a child that runs twice is seen.
    const auto child = [&values, this, seed, depth](int number) {
      values[static_cast<std::size_t>(number)] += node(child_of(seed, number), depth - 1);
    };
    run(op, count, seed, child);
    Value sum = seed;
    for (const Value value : values) sum += value;
    return sum;
  }

 private:
  template <class Child>
  void run(Op op, int count, Seed seed, const Child& child) {
    switch (op) {
      case Op::fork: {
        auto first = atl::fork([&child] { child(0); });
        child(1);
        return first.join();
      }
      case Op::scope: return in_scope(count, child);
      case Op::spawn: {
        std::vector<atl::Task<>> tasks;
        for (int i = 0; i < count; ++i) tasks.push_back(atl::spawn([&child, i] { child(i); }));
        const bool backwards = seed % 2 == 0;
        for (int i = 0; i < count; ++i) {
          tasks[static_cast<std::size_t>(backwards ? count - 1 - i : i)].join();
        }
        return;
      }
      case Op::event: {
        atl::Event event;
        auto waits = atl::spawn([&] {
          event.wait();
          child(0);
        });
        child(1);
        event.set();
        return waits.join();
      }
      case Op::barrier: {
        atl::Barrier barrier(count);
        std::atomic<int> arrived{0};
        std::atomic<bool> early{false};
        in_scope(count, [&](int i) {
          child(i);
          for (int round = 1; round <= 2; ++round) {
            ++arrived;
            barrier.arrive_and_wait();
            if (arrived < round * count) early = true;
            barrier.arrive_and_wait();
          }
        });
        if (early) throw std::logic_error("a party passed a barrier too early");
        return;
      }
      case Op::latch: {
        atl::Latch latch(count);
        for (int i = 0; i < count; ++i) {
          atl::spawn([&child, &latch, i] {
            child(i);
            latch.count_down();
          }).detach();
        }
        return latch.wait();
      }
      case Op::mutex: {
        atl::Mutex mutex;
        int inside = 0;
        in_scope(count, [&](int i) {
          const std::lock_guard lock(mutex);
          if (inside++ != 0) throw std::logic_error("two tasks hold a mutex");
          child(i);
          --inside;
        });
        return;
      }
      case Op::place: return atl::call(place(seed), [&child] { child(0); });
      case Op::loop: return atl::parallel_for(0, count, child, 1);
      case Op::yield: {
        for (int turn = 0; turn < 3; ++turn) atl::yield();
        return child(0);
      }
      case Op::sleep: {
        atl::sleep_for(std::chrono::microseconds(seed % 100));
        return child(0);
      }
      case Op::blocking: {
        atl::blocking([] { std::this_thread::yield(); });
        return child(0);
      }
      case Op::failure: {
        for (int i = 0; i < count; ++i) {
          auto fails = atl::fork([&child, i] {
            child(i);
            throw Failure{static_cast<Value>(i)};
          });
          try {
            atl::yield();
            fails.join();
          } catch (const Failure& failure) {
            if (failure.value == static_cast<Value>(i)) continue;
          }
          throw std::logic_error("an exception was lost");
        }
        return;
      }
      case Op::stop: {
        auto task = atl::spawn([] {
          atl::Event never;
          return never.wait(atl::this_task::stop_token());
        });
        child(0);
        task.request_stop();
        if (task.join()) throw std::logic_error("an event was set by nobody");
        return;
      }
      case Op::group: {
        atl::Group group(runtime_, {.threads = 1 + below(seed + 2, runtime_.workers())});
        return group.run([&child] { child(0); });
      }
      case Op::outside: return atl::blocking([&] { runtime_.run([&child] { child(0); }); });
      case Op::all_do: {
        std::atomic<int> calls{0};
        atl::all_do([&calls](int) { ++calls; });
        if (calls != runtime_.workers()) throw std::logic_error("all_do missed a worker");
        return child(0);
      }
    }
  }

  template <class Child>
  static void in_scope(int count, const Child& child) {
    atl::Scope scope;
    for (int i = 0; i < count; ++i) scope.fork([&child, i] { child(i); });
    scope.join();
  }

  atl::Place place(Seed seed) const {
    const int number = below(seed + 3, 1 << 20);
    switch (seed % 4) {
      case 0: return atl::on_worker(number % runtime_.workers());
      case 1: return atl::on_chiplet(number % runtime_.places().chiplets());
      case 2: {
        const std::vector<int> nodes = runtime_.places().nodes();
        return atl::on_node(nodes[static_cast<std::size_t>(number) % nodes.size()]);
      }
      default: return {};
    }
  }

  atl::Runtime& runtime_;
};

constexpr unsigned kChiplets = 16;

// Disturbs everything until it is destroyed.
class Disturber {
 public:
  Disturber(atl::Runtime& runtime, Seed seed)
      : cpus_(atl::test::real_cpus()), thread_([this, &runtime, seed](const std::stop_token& stop) {
          std::mt19937_64 random(seed);
          while (!stop.stop_requested()) {
            disturb(runtime, random);
            std::this_thread::sleep_for(std::chrono::milliseconds(random() % 4));
          }
          bind_all(cpus_);
        }) {}

 private:
  void disturb(atl::Runtime& runtime, std::mt19937_64& random) {
    switch (random() % 4) {
      case 0: try { runtime.set_spread(1 + static_cast<int>(random() % kChiplets));
        } catch (const atl::RuntimeFault&) {  // fewer than the workers need
        }
        return;
      case 1: return bind_all({cpus_[random() % cpus_.size()]});
      case 2: return bind_all(cpus_);
      default:
        for_each_thread([&](int thread) {
          if (random() % 8 == 0) syscall(SYS_tgkill, getpid(), thread, SIGUSR1);
        });
    }
  }

  template <class Call>
  static void for_each_thread(Call&& call) {
    DIR* const tasks = opendir("/proc/self/task");
    while (const dirent* const entry = readdir(tasks)) {
      if (const int thread = std::atoi(entry->d_name)) call(thread);
    }
    closedir(tasks);
  }

  static void bind_all(const std::vector<int>& cpus) {
    cpu_set_t mask;
    CPU_ZERO(&mask);
    for (const int cpu : cpus) CPU_SET(static_cast<std::size_t>(cpu), &mask);
    for_each_thread([&](int thread) { sched_setaffinity(thread, sizeof mask, &mask); });
  }

  std::vector<int> cpus_;
  std::jthread thread_;
};

std::atomic<Seed> running{0};  // for who reports that nothing moves
std::atomic<long> programs{0};

[[noreturn]] void give_up(Seed seed, const char* what) {
  std::printf("runtime-random-programs: WRONG: %s; repeat it with seed %llu\n", what,
              static_cast<unsigned long long>(seed));
  std::fflush(stdout);
  std::_Exit(1);
}

void watch(const std::stop_token& stop) {
  long before = -1;
  for (auto since = Clock::now(); !stop.stop_requested(); std::this_thread::sleep_for(100ms)) {
    if (const long now = programs; now != before) {
      before = now;
      since = Clock::now();
    } else if (Clock::now() - since > 240s) {
      give_up(running, "no progress for 240 s");
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 2;
  Seed seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  const int workers = argc > 3 ? std::atoi(argv[3]) : 64;
  const bool here = argc > 4 && std::string_view(argv[4]) == "here";
  const atl::Places places =
      here ? atl::places_here()
           : atl::synthetic_places("node:2 chiplet:8 core:8", atl::test::real_cpus());
  const Clock::time_point end = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                                   std::chrono::duration<double>(seconds));
  std::printf("runtime-random-programs: %g s, seed %llu, %d workers\n", seconds,
              static_cast<unsigned long long>(seed), workers);

  struct sigaction ignored{};
  ignored.sa_handler = [](int) {};
  ignored.sa_flags = SA_RESTART;
  sigaction(SIGUSR1, &ignored, nullptr);

  const std::jthread watcher(watch);
  do {
    running = seed;
    atl::RuntimeOptions options;
    options.workers = workers;
    options.places = places;
    options.interval = 2ms;
    options.stacks.bytes = std::size_t{1} << 20;  // sanitizers' frames are large
    atl::Runtime runtime(options);
    const Disturber disturber(runtime, seed);
    Program program(runtime);
    // A runtime lasts for some programs, each of which finds its workers asleep or busy.
    do {
      running = seed;
      const int depth = 2 + below(seed + 7, 6);
      try {
        auto next = runtime.spawn([&, seed] { return program.node(child_of(seed, 0), depth); });
        const Value value = runtime.run([&] { return program.node(seed, depth); });
        if (value != known(seed, depth) || next.join() != known(child_of(seed, 0), depth)) {
          give_up(seed, "another value");
        }
      } catch (const std::exception& fault) {
        give_up(seed, fault.what());
      }
      ++programs;
      seed = mixed(seed);
    } while (seed % 64 != 0 && Clock::now() < end);
  } while (Clock::now() < end);
  std::printf("%ld programs, all right\n", programs.load());
}
