// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-or-later
#include "clock.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <ctime>
#include <limits>

namespace atl::cachesim {
namespace {

// std::atomic::wait has no bound in time, a condition variable wakes all into one mutex.
long futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value,
           const timespec* bound) {
  static_assert(sizeof(word) == sizeof(std::uint32_t));
  return syscall(SYS_futex, &word, operation | FUTEX_PRIVATE_FLAG, value, bound, nullptr, 0);
}

}  // namespace

Clock::Clock(unsigned cpus, std::uint64_t quantum, std::chrono::microseconds patience)
    : quantum_(quantum), patience_(patience), cpus_(cpus) {}

// All operations that decide who waits are sequentially consistent. A CPU publishes its time and
// then looks at the others' (spend, then advance). So of two CPUs that reach a quantum at once, one
// sees both there and moves `begun_`. A CPU that waits reads the bell before it reads `begun_`,
// and the bell rings after `begun_` changes, so it cannot sleep through.
bool Clock::spend(unsigned cpu, std::uint64_t cycles) {
  Cpu& mine = cpus_[cpu];
  if (!mine.running.load(std::memory_order_relaxed)) resume(cpu);
  const std::uint64_t before = mine.cycles.load(std::memory_order_relaxed);
  const std::uint64_t now = before + cycles;
  mine.cycles.store(now);
  if (now / quantum_ == before / quantum_) return true;
  advance();
  const auto whole = std::chrono::floor<std::chrono::seconds>(patience_);
  const timespec bound = {whole.count(), std::chrono::nanoseconds(patience_ - whole).count()};
  bool patient = true;
  waiting_.fetch_add(1);
  while (patient) {
    const std::uint32_t heard = bell_.load();
    if (now / quantum_ <= begun_.load() || nobody_waits_.load()) break;
    patient = futex(bell_, FUTEX_WAIT, heard, &bound) == 0 || errno != ETIMEDOUT;
  }
  waiting_.fetch_sub(1);
  return patient;
}

// Moves `begun_` to the slowest running CPU's quantum, and wakes who waited for it.
void Clock::advance() {
  while (true) {
    std::uint64_t was = begun_.load();
    std::uint64_t slowest = std::numeric_limits<std::uint64_t>::max();
    for (const Cpu& cpu : cpus_) {
      if (!cpu.running.load()) continue;
      slowest = std::min(slowest, cpu.cycles.load() / quantum_);
    }
    if (slowest == std::numeric_limits<std::uint64_t>::max() || slowest <= was) return;
    if (!begun_.compare_exchange_strong(was, slowest)) continue;
    ring();
    return;
  }
}

void Clock::ring() {
  bell_.fetch_add(1);
  if (waiting_.load() != 0) futex(bell_, FUTEX_WAKE, INT_MAX, nullptr);
}

void Clock::idle(unsigned cpu) {
  cpus_[cpu].running.store(false);
  advance();
}

void Clock::resume(unsigned cpu) {
  Cpu& mine = cpus_[cpu];
  mine.running.store(true);
  const std::uint64_t now = begun_.load() * quantum_;
  if (mine.cycles.load(std::memory_order_relaxed) < now) mine.cycles.store(now);
}

std::uint64_t Clock::cycles() const {
  std::uint64_t most = 0;
  for (const Cpu& cpu : cpus_) most = std::max(most, cpu.cycles.load(std::memory_order_relaxed));
  return most;
}

bool Clock::is_running() const {
  return std::any_of(cpus_.begin(), cpus_.end(),
                     [](const Cpu& cpu) { return cpu.running.load(std::memory_order_relaxed); });
}

void Clock::let_go() {
  nobody_waits_.store(true);
  ring();
}

void Clock::stop() {
  nobody_waits_.store(false);
  for (Cpu& cpu : cpus_) cpu.running.store(false);
  begun_.store(cycles() / quantum_);
}

}  // namespace atl::cachesim
