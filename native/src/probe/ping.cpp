#include "ping.hpp"

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

constexpr std::uint32_t kPing = 0;  // whose turn it is: the timing side's
constexpr std::uint32_t kPong = 1;
constexpr std::uint32_t kQuit = 2;

// After so many attempts in vain, 50 µs to 1 ms, the partner has lost its CPU.
constexpr std::uint32_t kPatience = 1 << 16;

// Both take the turn `from` and make it `to`; false: the other side quits.
struct Cas {
  // Relaxed: nothing is handed over but the flag itself.
  static bool take(Flag& flag, std::uint32_t from, std::uint32_t to, const Team& team) {
    for (std::uint32_t attempts = 1;; ++attempts) {
      std::uint32_t seen = from;
      if (flag.compare_exchange_strong(seen, to, std::memory_order_relaxed)) return true;
      if (seen == kQuit) return false;
      if (attempts % kPatience == 0) team.nap();
    }
  }
};

struct Store {
  // Acquire and release, as a queue needs them: on weak machines they are part of the price.
  static bool take(Flag& flag, std::uint32_t from, std::uint32_t to, const Team& team) {
    for (std::uint32_t attempts = 1;; ++attempts) {
      const std::uint32_t seen = flag.load(std::memory_order_acquire);
      if (seen == from) break;
      if (seen == kQuit) return false;
      if (attempts % kPatience == 0) team.nap();
    }
    flag.store(to, std::memory_order_release);
    return true;
  }
};

// Ticks of so many round trips, seen from the timing side.
template <typename Method, bool kAlone>
std::uint64_t round_trips(Flag& flag, std::uint64_t count, const Team& team) {
  const std::uint64_t begin = ticks();
  for (std::uint64_t i = 0; i < count; ++i) {
    Method::take(flag, kPing, kPong, team);
    if constexpr (kAlone) Method::take(flag, kPong, kPing, team);
  }
  return ticks() - begin;
}

// Round trips of a sample that takes `sample_ns`. The fastest of growing counts decides, so that a
// partner that is late once does not make the samples short.
template <typename Method, bool kAlone>
std::uint64_t calibrate(Flag& flag, double sample_ns, std::int64_t deadline_ns, const Team& team) {
  constexpr std::uint64_t kMost = 1 << 16;
  double round_trip_ns = 1e12;
  for (std::uint64_t count = 1; count <= kMost; count *= 2) {
    const double ns =
        static_cast<double>(round_trips<Method, kAlone>(flag, count, team)) * tick_ns();
    round_trip_ns = std::min(round_trip_ns, std::max(1.0, ns) / static_cast<double>(count));
    if (round_trip_ns * static_cast<double>(count) >= sample_ns / 2) break;
    if (now_ns() >= deadline_ns) break;
  }
  const double count = std::clamp(sample_ns / round_trip_ns, 1.0, static_cast<double>(kMost));
  return static_cast<std::uint64_t>(count);
}

// The timing side: samples until there are enough.
template <typename Method, bool kAlone>
std::vector<double> time_trips(Flag& flag, const Limits& limits, const Team& team) {
  constexpr double kSampleNs = 25'000;
  // The budget begins here, when both threads have their CPUs.
  Samples samples(limits);
  // A twentieth: enough samples for an interval, whatever the budget.
  const double sample_ns = std::clamp(static_cast<double>(limits.budget_ns) / 20, 1e3, kSampleNs);
  const std::int64_t calibrated_by_ns = now_ns() + limits.budget_ns / 8;
  const std::uint64_t count = calibrate<Method, kAlone>(flag, sample_ns, calibrated_by_ns, team);
  while (!samples.done()) {
    const auto taken = static_cast<double>(round_trips<Method, kAlone>(flag, count, team));
    samples.add(taken * tick_ns() / static_cast<double>(count) / 2);
  }
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
  if (rank == 0) {
    std::vector<double> samples = time_trips<Method, false>(flag, limits, team);
    // It is the partner's turn; only when it is ours again do we both know who writes the flag.
    Method::take(flag, kPing, kQuit, team);
    return samples;
  }
  while (Method::take(flag, kPong, kPing, team)) {
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
