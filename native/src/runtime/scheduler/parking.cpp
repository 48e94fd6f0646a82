#include "parking.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>

namespace atl::runtime {

namespace {

using detail::kSearcher;
using detail::kSleeper;

// Returns when woken, when `word` is not `expected`, on a signal, or at the deadline (true).
bool futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t expected,
                const timespec* deadline) {
  // WAIT_BITSET takes an absolute time of CLOCK_MONOTONIC, which is steady_clock's.
  const long rc = syscall(SYS_futex, &word, FUTEX_WAIT_BITSET_PRIVATE, expected, deadline, nullptr,
                          FUTEX_BITSET_MATCH_ANY);
  return rc != 0 && errno == ETIMEDOUT;
}

void futex_wake(std::atomic<std::uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

// A time before the clock's zero is in the past; the kernel refuses negative ones.
timespec to_timespec(Parking::Deadline deadline) {
  using std::chrono::nanoseconds;
  auto since = std::chrono::duration_cast<nanoseconds>(deadline.time_since_epoch());
  if (since < nanoseconds::zero()) since = nanoseconds::zero();
  return {static_cast<time_t>(since.count() / 1'000'000'000),
          static_cast<long>(since.count() % 1'000'000'000)};
}

}  // namespace

Parking::Parking(int workers)
    : workers_(workers), sleeper_(std::make_unique<Sleeper[]>(static_cast<std::size_t>(workers))) {
  choose_fences();
}

// The counts change only by read-modify-write, so each thread that changes them is ordered with the
// ones before it; through acq_rel, what a searcher has uncovered (by taking the word on top of a
// deque) is visible in the second look of a worker that sleeps after it.

void Parking::start_search() { word_.fetch_add(kSearcher, std::memory_order_acq_rel); }

int Parking::end_search(std::span<const int> nearest_first) {
  const std::uint64_t before = word_.fetch_sub(kSearcher, std::memory_order_acq_rel);
  // Producers may have relied on it. No fence: if their work is not visible yet, it is to the next
  // worker that goes to sleep, after its fence.
  if (detail::wants_wake(before - kSearcher)) return wake_one(nearest_first);  // [last-searcher]
  return kNobody;
}

void Parking::prepare(int worker) {
  // One step, so that no producer sees neither a searcher nor a sleeper.
  word_.fetch_add(kSleeper - kSearcher, std::memory_order_acq_rel);  // [sleeper-count]
  // After the count: every sleeper is counted, so the count cannot fall below zero.
  sleeper_[worker].state.store(asleep, std::memory_order_relaxed);  // [sleeper-state]
  heavy_fence();                                                    // [sleeper-fence]
}

void Parking::cancel(int worker) {
  Sleeper& sleeper = sleeper_[worker];
  if (!withdraw(sleeper)) await_notified(sleeper);
}

void Parking::commit(int worker) { await_notified(sleeper_[worker]); }

Parking::Wake Parking::commit(int worker, Deadline deadline) {
  Sleeper& sleeper = sleeper_[worker];
  const timespec until = to_timespec(deadline);
  while (sleeper.state.load(std::memory_order_relaxed) == asleep) {
    if (futex_wait(sleeper.state, asleep, &until) && withdraw(sleeper)) return Wake::deadline;
  }
  await_notified(sleeper);
  return Wake::notified;
}

// The worker itself, from asleep: it is a searcher again, unless a waker was faster.
bool Parking::withdraw(Sleeper& sleeper) {
  std::uint32_t state = asleep;
  // Relaxed: this decides only who changes the counts.
  if (!sleeper.state.compare_exchange_strong(state, awake, std::memory_order_relaxed)) return false;
  word_.fetch_sub(kSleeper - kSearcher, std::memory_order_acq_rel);
  return true;
}

void Parking::await_notified(Sleeper& sleeper) {
  std::uint32_t state;
  // Acquire: what the waker published before it.
  while ((state = sleeper.state.load(std::memory_order_acquire)) != notified) {
    futex_wait(sleeper.state, state, nullptr);
  }
  sleeper.state.store(awake, std::memory_order_relaxed);
}

// Finding nobody is not an error: a counted sleeper was claimed by another thread, or withdrew, or
// has not stored its state yet; all of them check the queues after that.
int Parking::wake_one(std::span<const int> nearest_first) {
  for (const int worker : nearest_first) {
    if (wake(worker)) return worker;
  }
  return kNobody;
}

bool Parking::wake(int worker) {
  std::atomic<std::uint32_t>& state = sleeper_[worker].state;
  // The load spares workers that are awake the write to their line.
  std::uint32_t expected = asleep;
  if (state.load(std::memory_order_relaxed) != asleep ||
      !state.compare_exchange_strong(expected, claimed, std::memory_order_relaxed)) {  // [claim]
    return false;
  }
  // Before the worker can run, or it could end a search that was not counted yet.
  word_.fetch_sub(kSleeper - kSearcher, std::memory_order_acq_rel);  // [waker-count]
  state.store(notified, std::memory_order_release);                  // [waker-state]
  futex_wake(state);
  return true;
}

void Parking::notify_all() {
  detail::light_fence();
  for (int worker = 0; worker < workers_; ++worker) wake(worker);
}

int Parking::sleepers() const {
  return static_cast<int>(word_.load(std::memory_order_relaxed) >> 32);
}

int Parking::searchers() const {
  return static_cast<int>(word_.load(std::memory_order_relaxed) & 0xffffffff);
}

}  // namespace atl::runtime
