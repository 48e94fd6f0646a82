// The counters of a worker. Only the worker writes them; any thread may read.
//
// A counter is an atomic that its owner loads, adds to and stores, all relaxed: no lock prefix,
// about the cost of a plain increment, and no data race with readers. The counters of a worker are
// read one after another, so a snapshot taken while it runs may contain a steal whose task is not
// yet in `tasks`; no counter ever decreases.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "atoll/runtime/victims.hpp"

namespace atl {

namespace detail {

// Written by one thread only; `add` from a second one loses counts.
class OwnCount {
 public:
  void add(std::uint64_t more = 1) noexcept {
    // Relaxed: the number publishes nothing.
    value_.store(value_.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t read() const noexcept {
    return value_.load(std::memory_order_relaxed);
  }

  // For a count that publishes: a reader that acquires it sees what its owner did before.
  void add_released() noexcept {
    value_.store(value_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }
  [[nodiscard]] std::uint64_t read_acquired() const noexcept {
    return value_.load(std::memory_order_acquire);
  }

 private:
  std::atomic<std::uint64_t> value_{0};
};

}  // namespace detail

// One list of counters for the worker's own (`WorkerCounts`) and for a snapshot (`Counts`), so that
// both have the same.
template <class Cell>
struct CountsOf {
  Cell tasks{};         // jobs that a worker began: from its deque, stolen, injected
  Cell inline_forks{};  // forks that their own join ran; not in `tasks`
  std::array<Cell, kDistances> steals{};  // by Distance; of tasks, fresh and suspended
  Cell failed_rounds{};                   // times that every victim was tried and none had work
  Cell parks{};                           // times that the worker went to sleep
  Cell wakes{};                           // workers that this one woke
  Cell migrations{};                      // tasks resumed here that had last run on another worker
  Cell switches{};                        // changes of stack, in either direction
  Cell moves{};                           // times that the worker was moved to another core
  Cell yields{};
};

using WorkerCounts = CountsOf<detail::OwnCount>;
using Counts = CountsOf<std::uint64_t>;

// Calls f(name, cell of each `sets`) for every counter, in the order of the profile's JSON.
template <class F, class... Sets>
constexpr void for_each_count(F&& f, Sets&&... sets) {
  f("tasks", sets.tasks...);
  f("inline_forks", sets.inline_forks...);
  f("steals_chiplet", sets.steals[0]...);
  f("steals_near", sets.steals[1]...);
  f("steals_node", sets.steals[2]...);
  f("steals_elsewhere", sets.steals[3]...);
  f("failed_rounds", sets.failed_rounds...);
  f("parks", sets.parks...);
  f("wakes", sets.wakes...);
  f("migrations", sets.migrations...);
  f("switches", sets.switches...);
  f("moves", sets.moves...);
  f("yields", sets.yields...);
}

// Their values now.
[[nodiscard]] inline Counts read_counts(const WorkerCounts& counts) noexcept {
  Counts read;
  for_each_count(
      [](const char*, std::uint64_t& to, const detail::OwnCount& from) { to = from.read(); }, read,
      counts);
  return read;
}

}  // namespace atl
