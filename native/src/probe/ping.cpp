#include "ping.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <new>
#include <utility>
#include <vector>

#include "clock.hpp"
#include "memory.hpp"
#include "samples.hpp"
#include "threads.hpp"

namespace atl::probe {

namespace {

using Flag = std::atomic<std::uint32_t>;

constexpr std::uint32_t kPing = 0;  // it is the timing side's turn
constexpr std::uint32_t kPong = 1;
constexpr std::uint32_t kQuit = 2;

enum class Turn { kTaken, kQuit, kLate };

// After this many failed attempts, about 50 µs, the partner has probably lost its CPU.
constexpr std::uint32_t kCasPatience = 1 << 13;
constexpr std::uint32_t kStorePatience = 1 << 16;

// Both methods take the turn `from` and set it to `to`. They are late if they had to sleep once.
struct CasMethod {
  // Relaxed, because the threads exchange nothing except the flag.
  static Turn take(Flag& flag, std::uint32_t from, std::uint32_t to, const Team& team) {
    for (std::uint32_t attempts = 1;; ++attempts) {
      std::uint32_t seen = from;
      if (flag.compare_exchange_strong(seen, to, std::memory_order_relaxed)) {
        return Turn::kTaken;
      }
      if (seen == kQuit) return Turn::kQuit;
      if (attempts == kCasPatience) {
        team.nap();
        return Turn::kLate;
      }
    }
  }
};

struct StoreMethod {
  // Acquire and release, as in a queue: on weakly ordered machines they are part of the cost.
  static Turn take(Flag& flag, std::uint32_t from, std::uint32_t to, const Team& team) {
    for (std::uint32_t attempts = 1;; ++attempts) {
      const std::uint32_t seen = flag.load(std::memory_order_acquire);
      if (seen == from) break;
      if (seen == kQuit) return Turn::kQuit;
      if (attempts == kStorePatience) {
        team.nap();
        return Turn::kLate;
      }
    }
    flag.store(to, std::memory_order_release);
    return Turn::kTaken;
  }
};

struct Trips {
  double mean_ns;
  bool interrupted;  // another thread used one of the two CPUs
};

// How often a thread of this process has lost its CPU. The main thread sleeps, so it was one of
// the two measuring threads.
std::int64_t times_preempted() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_nivcsw;
}

// Makes `count` round trips, timed by this side: at least one, and fewer than `count` if the
// partner is late.
template <typename Method, bool kAlone>
Trips round_trips(Flag& flag, std::uint64_t count, const Team& team) {
  const std::int64_t preempted = times_preempted();
  const auto give = [&] {
    if (Method::take(flag, kPing, kPong, team) == Turn::kLate) return false;
    if constexpr (kAlone) Method::take(flag, kPong, kPing, team);
    return true;
  };
  bool late = false;
  // A round trip runs from give to give, so the first one is not timed.
  while (!give()) {
  }
  std::uint64_t done = 0;
  const std::uint64_t begin = ticks();
  while (done < count) {
    if (give()) {
      ++done;
      continue;
    }
    late = true;
    if (done > 0) break;
  }
  // Never 0, even if the clock is coarse.
  const auto ns = std::max(1.0, static_cast<double>(ticks() - begin)) * tick_ns();
  return {ns / static_cast<double>(done), late || times_preempted() != preempted};
}

// Finds the round trips of a sample of `sample_ns`; ignores interrupted tries until `until_ns`.
template <typename Method, bool kAlone>
std::uint64_t calibrate(Flag& flag, double sample_ns, std::int64_t until_ns, const Team& team) {
  constexpr std::size_t kMost = 1 << 16;
  return repetitions_for(sample_ns, kMost, [&](std::size_t count) {
    for (;;) {
      const Trips trips = round_trips<Method, kAlone>(flag, count, team);
      if (trips.interrupted && now_ns() < until_ns) continue;
      return trips.mean_ns * static_cast<double>(count);
    }
  });
}

struct Result {
  std::vector<double> one_way_ns;
  std::int64_t interrupted = 0;
};

// The timing side: takes samples until there are enough.
template <typename Method, bool kAlone>
Result time_trips(Flag& flag, const Limits& limits, const Team& team) {
  constexpr double kSampleNs = 25'000;
  // The budget starts here, when both threads run on their CPUs.
  Samples samples(limits);
  // An interrupted sample times the scheduler and not the line, so it is counted and repeated. If
  // nothing better comes within three more budgets, it is kept.
  const std::int64_t keep_ns = now_ns() + 4 * limits.budget_ns;
  // A twentieth gives enough samples for an interval with any budget.
  const double sample_ns = std::clamp(static_cast<double>(limits.budget_ns) / 20, 1e3, kSampleNs);
  const std::uint64_t count =
      calibrate<Method, kAlone>(flag, sample_ns, now_ns() + 2 * limits.budget_ns, team);
  Result result;
  while (!samples.done()) {
    const Trips trips = round_trips<Method, kAlone>(flag, count, team);
    result.interrupted += trips.interrupted ? 1 : 0;
    if (!trips.interrupted || now_ns() > keep_ns) samples.add(trips.mean_ns / 2);
  }
  result.one_way_ns = samples.values();
  return result;
}

// One thread's part. The timing side returns the result.
template <typename Method>
Result play(std::size_t rank, std::size_t home, const Memory& memory, const Limits& limits,
            Team& team) {
  const bool alone = team.size() == 1;
  if (alone || rank == home) new (memory.data()) Flag(kPing);  // the first touch of its page
  team.barrier();
  Flag& flag = *std::launder(memory.as<Flag>());
  if (alone) return time_trips<Method, true>(flag, limits, team);
  if (rank == 0) {
    Result result = time_trips<Method, false>(flag, limits, team);
    // It is the partner's turn. Once it is ours again, both threads know who writes the flag.
    while (Method::take(flag, kPing, kQuit, team) == Turn::kLate) {
    }
    return result;
  }
  while (Method::take(flag, kPong, kPing, team) != Turn::kQuit) {
  }
  return {};
}

}  // namespace

Json ping(const Request& request) {
  const std::vector<int> cpus = request.cpus("cpus", 2, 2);
  const auto home = static_cast<std::size_t>(request.integer("home", 0, 1));
  const bool cas = request.word("op", {"cas", "store"}) == "cas";
  Limits limits = request.limits();
  tick_ns();
  // The budget includes starting and ending the threads, which takes about 150 µs.
  limits.budget_ns -= limits.budget_ns / 16;
  const std::vector<int> players = request.null_run() ? std::vector<int>{cpus[0]} : cpus;
  require_cpus(cpus);
  Team team(players, limits.budget_ns);
  const Memory memory(page_bytes(), std::nullopt, false);
  Result result;
  team.run([&](std::size_t rank) {
    Result own = cas ? play<CasMethod>(rank, home, memory, limits, team)
                     : play<StoreMethod>(rank, home, memory, limits, team);
    if (rank == 0) result = std::move(own);
  });
  Json answer{{"one_way_ns", std::move(result.one_way_ns)}, {"interrupted", result.interrupted}};
  add_threads(answer, team);
  add_pages(answer, memory);
  return answer;
}

}  // namespace atl::probe
