// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-or-later
// The simulated time of each CPU, and the wait that keeps them together.
//
// A CPU's time is its instructions plus the cycles that it waited. Time is divided into quanta. A
// CPU that begins a quantum waits until all others that are not idle have begun it too, so no two
// running CPUs are further apart than a quantum and what one spends between two calls.
//
// The wait is bounded. QEMU stops all CPUs for some work (a TLB flush, for example), and a CPU that
// waits here does not stop there: the CPU that asked for it would never come. So a CPU that waited
// for `patience` goes on, and says so.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <vector>

namespace atl::cachesim {

class Clock {
 public:
  Clock(unsigned cpus, std::uint64_t quantum, std::chrono::microseconds patience);

  // The CPU, whose thread calls this, spent these cycles. May wait; false if it gave up.
  bool spend(unsigned cpu, std::uint64_t cycles);

  // Nobody waits for an idle CPU. One that comes back continues at the slowest one's quantum. For
  // the CPU's thread.
  void idle(unsigned cpu);
  void resume(unsigned cpu);

  // Nobody waits any longer, until `stop`: all CPUs are idle then, and continue where the furthest
  // was. None may be inside `stop`.
  void let_go();
  void stop();

  // The time that all running CPUs have come to, in whole quanta.
  [[nodiscard]] std::uint64_t slowest() const { return begun_.load() * quantum_; }

  [[nodiscard]] std::uint64_t cycles(unsigned cpu) const {
    return cpus_[cpu].cycles.load(std::memory_order_relaxed);
  }
  // Of the CPU that is furthest.
  [[nodiscard]] std::uint64_t cycles() const;
  [[nodiscard]] bool is_running() const;  // at least one CPU

 private:
  struct alignas(64) Cpu {
    std::atomic<std::uint64_t> cycles{0};
    std::atomic<bool> running{false};
  };

  void advance();
  void ring();

  std::uint64_t quantum_;
  std::chrono::microseconds patience_;
  std::vector<Cpu> cpus_;
  alignas(64) std::atomic<std::uint64_t> begun_{0};  // the quantum that all running CPUs have begun
  std::atomic<std::uint32_t> bell_{0};               // changes whenever begun_ does
  std::atomic<std::uint32_t> waiting_{0};
  std::atomic<bool> nobody_waits_{false};
};

}  // namespace atl::cachesim
