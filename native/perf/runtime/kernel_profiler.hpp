// The cost of the profiler: nqueens whose first four queens are placed by a loop, so that each item
// of the loop is a morsel of about 30 us, the section length that docs/runtime-profiler.md
// recommends. It runs without sections, and with a section per morsel while keeping a trace.
#pragma once

#include <atomic>
#include <cstddef>
#include <optional>

#include "backend.hpp"
#include "kernel_fork.hpp"

namespace atl::perf {

constexpr int kQueensOfMorsel = 4;

// N^4, although positions whose first queens attack each other have no work.
template <std::size_t N>
constexpr std::size_t kMorselNumbers = N * N * N * N;

template <std::size_t N>
std::optional<Queens<N>> morsel_of(std::size_t number) {
  Queens<N> queens{};
  for (int row = 0; row < kQueensOfMorsel; ++row, number /= N) {
    const auto column = static_cast<int>(number % N);
    if (!is_safe(queens, row, column)) return std::nullopt;
    queens[static_cast<std::size_t>(row)] = static_cast<signed char>(column);
  }
  return queens;
}

template <std::size_t N>
long count_morsels() {
  long morsels = 0;
  for (std::size_t number = 0; number < kMorselNumbers<N>; ++number) {
    if (morsel_of<N>(number)) ++morsels;
  }
  return morsels;
}

// `around(f)` calls f.
template <std::size_t N, class Runtime, class Around>
long nqueens_by_morsels(Runtime& on, Around around) {
  std::atomic<long> ways = 0;
  on.loops(1, kMorselNumbers<N>, [&ways, around] {
    return [&ways, around](std::size_t number) {
      const std::optional<Queens<N>> queens = morsel_of<N>(number);
      if (!queens) return;
      around([&] {
        ways.fetch_add(nqueens<Runtime, N>(*queens, kQueensOfMorsel), std::memory_order_relaxed);
      });
    };
  });
  return ways;
}

}  // namespace atl::perf
