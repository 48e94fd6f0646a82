#include "spin.hpp"

#include <algorithm>
#include <atomic>
#include <vector>

#include "clock.hpp"
#include "memory.hpp"
#include "samples.hpp"
#include "threads.hpp"

namespace atl::probe {

namespace {

constexpr std::uint64_t kUnrolled = 16;

// Ticks of kUnrolled x rounds multiplications, each dependent on the one before; with kNull, of
// the loop alone.
template <bool kNull>
std::uint64_t chain(std::uint64_t rounds) {
  std::uint64_t value = 3;
  const std::uint64_t begin = ticks();
  for (std::uint64_t i = 0; i < rounds; ++i) {
    if constexpr (!kNull) {
#pragma GCC unroll 16
      for (std::uint64_t j = 0; j < kUnrolled; ++j) {
        value *= 0x9E3779B97F4A7C15;
        asm volatile("" : "+r"(value));  // keeps the compiler from combining the factors
      }
    }
    asm volatile("" : "+r"(value));
  }
  return ticks() - begin;
}

template <bool kNull>
void time_chain(const Limits& limits, Samples& samples, std::atomic<std::size_t>& unfinished,
                const Team& team) {
  const double sample_ns = std::clamp(static_cast<double>(limits.budget_ns) / 20, 1e4, 2e5);
  constexpr std::size_t kMostRounds = 1 << 24;
  const std::uint64_t rounds = repetitions_for(sample_ns, kMostRounds, [](std::size_t count) {
    return static_cast<double>(chain<kNull>(count)) * tick_ns();
  });
  const auto operations = static_cast<double>(rounds * kUnrolled);
  while (!samples.done()) {
    samples.add(static_cast<double>(chain<kNull>(rounds)) * tick_ns() / operations);
    team.check();
  }
  unfinished.fetch_sub(1, std::memory_order_relaxed);
  while (unfinished.load(std::memory_order_relaxed) > 0) {
    chain<kNull>(rounds);
    team.check();
  }
}

}  // namespace

Json spin(const Request& request) {
  const std::vector<int> cpus = request.cpus("cpus");
  const Limits limits = request.limits();
  const bool null_run = request.null_run();
  tick_ns();
  Team team(cpus, limits.budget_ns);
  std::vector<Samples> samples(cpus.size(), Samples(limits));
  alignas(kApartBytes) std::atomic<std::size_t> unfinished{cpus.size()};
  team.run([&](std::size_t rank) {
    // Local while it grows, because neighbours in `samples` share cache lines.
    Samples own(limits);
    team.barrier();
    if (null_run) {
      time_chain<true>(limits, own, unfinished, team);
    } else {
      time_chain<false>(limits, own, unfinished, team);
    }
    samples[rank] = std::move(own);
  });
  Json op_ns = Json::array();
  for (const Samples& of_cpu : samples) op_ns.push_back(of_cpu.values());
  Json answer{{"op_ns", std::move(op_ns)}};
  add_threads(answer, team);
  return answer;
}

}  // namespace atl::probe
