#include "ping.hpp"

#include <algorithm>
#include <atomic>
#include <limits>
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

constexpr std::uint32_t kPing = 0;  // whose turn it is: the timing side's
constexpr std::uint32_t kPong = 1;
constexpr std::uint32_t kQuit = 2;

// The line as one thread sees it.
struct Side {
  Flag& flag;
  const Team& team;
  std::int64_t deadline_ns;  // a wait that lasts longer may be given up; kNever for the partner
};
constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

enum class Turn { kTaken, kQuit, kLate };

// After so many attempts in vain, some 50 µs, the partner has lost its CPU.
constexpr std::uint32_t kCasPatience = 1 << 13;
constexpr std::uint32_t kStorePatience = 1 << 16;

Turn nap(const Side& side) {
  side.team.nap();
  return now_ns() > side.deadline_ns ? Turn::kLate : Turn::kTaken;
}

// Both take the turn `from` and make it `to`.
struct Cas {
  // Relaxed: nothing is handed over but the flag itself.
  static Turn take(const Side& side, std::uint32_t from, std::uint32_t to) {
    for (std::uint32_t attempts = 1;; ++attempts) {
      std::uint32_t seen = from;
      if (side.flag.compare_exchange_strong(seen, to, std::memory_order_relaxed)) {
        return Turn::kTaken;
      }
      if (seen == kQuit) return Turn::kQuit;
      if (attempts % kCasPatience == 0 && nap(side) == Turn::kLate) return Turn::kLate;
    }
  }
};

struct Store {
  // Acquire and release, as a queue needs them: on weak machines they are part of the price.
  static Turn take(const Side& side, std::uint32_t from, std::uint32_t to) {
    for (std::uint32_t attempts = 1;; ++attempts) {
      const std::uint32_t seen = side.flag.load(std::memory_order_acquire);
      if (seen == from) break;
      if (seen == kQuit) return Turn::kQuit;
      if (attempts % kStorePatience == 0 && nap(side) == Turn::kLate) return Turn::kLate;
    }
    side.flag.store(to, std::memory_order_release);
    return Turn::kTaken;
  }
};

// The mean time of `count` round trips, seen from the timing side. Past the deadline a partner
// that does not answer ends them early, but not before the first.
template <typename Method, bool kAlone>
double round_trip_ns(const Side& side, std::uint64_t count) {
  const std::uint64_t begin = ticks();
  std::uint64_t trips = 0;
  while (trips < count) {
    if (Method::take(side, kPing, kPong) == Turn::kLate) {
      if (trips > 0) break;
      continue;
    }
    if constexpr (kAlone) Method::take(side, kPong, kPing);
    ++trips;
  }
  return static_cast<double>(ticks() - begin) * tick_ns() / static_cast<double>(trips);
}

// Round trips of a sample that takes `sample_ns`. The fastest of growing counts decides, so that a
// partner that is late once does not make the samples short.
template <typename Method, bool kAlone>
std::uint64_t calibrate(const Side& side, double sample_ns, std::int64_t until_ns) {
  constexpr std::uint64_t kMost = 1 << 16;
  double fastest_ns = 1e12;
  for (std::uint64_t count = 1; count <= kMost; count *= 2) {
    // Never 0, where the clock is coarse.
    const double ns = std::max(0.1, round_trip_ns<Method, kAlone>(side, count));
    fastest_ns = std::min(fastest_ns, ns);
    if (fastest_ns * static_cast<double>(count) >= sample_ns / 2 || now_ns() >= until_ns) break;
  }
  const double count = std::clamp(sample_ns / fastest_ns, 1.0, static_cast<double>(kMost));
  return static_cast<std::uint64_t>(count);
}

// The timing side: samples until there are enough.
template <typename Method, bool kAlone>
std::vector<double> time_trips(Flag& flag, const Limits& limits, const Team& team) {
  constexpr double kSampleNs = 25'000;
  // The budget begins here, when both threads have their CPUs.
  Samples samples(limits);
  const std::int64_t begin_ns = now_ns();
  const Side side{flag, team, begin_ns + limits.budget_ns};
  // A twentieth: enough samples for an interval, whatever the budget.
  const double sample_ns = std::clamp(static_cast<double>(limits.budget_ns) / 20, 1e3, kSampleNs);
  const std::uint64_t count =
      calibrate<Method, kAlone>(side, sample_ns, begin_ns + limits.budget_ns / 8);
  while (!samples.done()) samples.add(round_trip_ns<Method, kAlone>(side, count) / 2);
  return samples.values();
}

// One thread's part; the timing side returns its samples.
template <typename Method>
std::vector<double> play(std::size_t rank, std::size_t home, const Memory& memory,
                         const Limits& limits, Team& team) {
  const bool alone = team.size() == 1;
  if (alone || rank == home) new (memory.data()) Flag(kPing);  // the first touch of its page
  team.barrier();
  Flag& flag = *std::launder(memory.as<Flag>());
  if (alone) return time_trips<Method, true>(flag, limits, team);
  const Side side{flag, team, kNever};
  if (rank == 0) {
    std::vector<double> samples = time_trips<Method, false>(flag, limits, team);
    // It is the partner's turn; only when it is ours again do we both know who writes the flag.
    Method::take(side, kPing, kQuit);
    return samples;
  }
  while (Method::take(side, kPong, kPing) == Turn::kTaken) {
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
  // The budget is for all of it, and threads take some 150 µs to start and to end.
  limits.budget_ns -= limits.budget_ns / 16;
  const std::vector<int> players = request.null_run() ? std::vector<int>{cpus[0]} : cpus;
  require_cpus(cpus);
  Team team(players, limits.budget_ns);
  const Memory memory(page_bytes(), std::nullopt, false);
  std::vector<double> one_way_ns;
  team.run([&](std::size_t rank) {
    std::vector<double> samples = cas ? play<Cas>(rank, home, memory, limits, team)
                                      : play<Store>(rank, home, memory, limits, team);
    if (rank == 0) one_way_ns = std::move(samples);
  });
  Json answer{{"one_way_ns", std::move(one_way_ns)}};
  add_threads(answer, team);
  add_pages(answer, memory);
  return answer;
}

}  // namespace atl::probe
