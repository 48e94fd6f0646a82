#include "atoll/runtime/semaphore.hpp"

#include <limits>
#include <string>

#include "atoll/runtime/places.hpp"

namespace atl {

Semaphore::Semaphore(std::ptrdiff_t permits) : free_(permits) {
  if (permits < 0) {
    throw RuntimeFault("a Semaphore of " + std::to_string(permits) + " permits: give 0 or more");
  }
}

bool Semaphore::acquire_slow(detail::Deadline deadline, const std::stop_token& stop) {
  struct Waits {
    std::atomic<int>& waiting;
    explicit Waits(std::atomic<int>& count) : waiting(count) { ++waiting; }
    ~Waits() { --waiting; }
  };
  std::unique_lock lock(mutex_);
  const Waits waits(waiting_);
  return released_.wait_until(lock, deadline, [this] { return try_acquire(); }, stop);
}

void Semaphore::release(std::ptrdiff_t permits) {
  if (permits < 1) {
    throw RuntimeFault("release of " + std::to_string(permits) + " permits: give 1 or more");
  }
  std::ptrdiff_t free = free_.load();
  do {
    if (free > std::numeric_limits<std::ptrdiff_t>::max() - permits) {
      throw RuntimeFault("release of " + std::to_string(permits) + " permits besides " +
                         std::to_string(free) + " free ones: release what was acquired");
    }
  } while (!free_.compare_exchange_weak(free, free + permits));
  if (waiting_.load() == 0) return;
  // With the lock, so that no waiter is between its look and its wait.
  const std::lock_guard lock(mutex_);
  if (permits == 1) {
    released_.notify_one();
  } else {
    released_.notify_all();
  }
}

}  // namespace atl
