#include "timer.hpp"

#include <pthread.h>
#include <sys/prctl.h>

#include <csignal>
#include <new>
#include <utility>

#include "scheduler/helper_thread.hpp"

namespace atl::runtime {

namespace {

constexpr std::size_t kWaits = 0;
constexpr std::size_t kLimits = 1;

// Storage without a destructor call.
alignas(Timer) std::byte timer_storage[2][sizeof(Timer)];

}  // namespace

void Timer::make_all() {
  ::new (timer_storage[kWaits]) Timer(true);
  ::new (timer_storage[kLimits]) Timer(false);
}

Timer& Timer::at(std::size_t use) {
  [[maybe_unused]] static const bool once = [] {
    make_all();
    // The child has no timer thread and no sleepers, and a thread of the parent may hold a lock.
    pthread_atfork(nullptr, nullptr, make_all);
    return true;
  }();
  return *std::launder(reinterpret_cast<Timer*>(timer_storage[use]));
}

Timer& Timer::waits() { return at(kWaits); }
Timer& Timer::limits() { return at(kLimits); }

void Timer::add(Entry& entry, detail::Deadline deadline) {
  const std::lock_guard lock(mutex_);
  if (!started_) start();
  entry.deadline = deadline;
  entry.number = ++last_number_;
  heap_.push_back(&entry);
  entry.at = heap_.size() - 1;
  rise(entry.at);
  if (entry.at == 0) earlier_.notify_one();
}

bool Timer::remove(Entry& entry) {
  const std::lock_guard lock(mutex_);
  if (entry.at == kNowhere) return false;
  take(entry);
  return true;
}

void Timer::start() {
  start_helper_thread("a timer", [this] { serve(); });
  started_ = true;
}

void Timer::serve() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, nullptr);
  // By default the kernel lets a sleep be 50 us late, to bundle wake-ups.
  prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
  std::unique_lock lock(mutex_);
  for (;;) {
    if (heap_.empty()) {
      earlier_.wait(lock);
    } else if (Entry* const first = heap_.front();
               first->deadline > std::chrono::steady_clock::now()) {
      earlier_.wait_until(lock, detail::Deadline(first->deadline));  // a copy: it may go meanwhile
    } else {
      take(*first);
      if (!rings_locked_) lock.unlock();
      first->ring(first);
      if (!rings_locked_) lock.lock();
    }
  }
}

// A binary heap (Williams 1964) whose entries know their index, so that any can be removed.

bool Timer::before(const Entry& a, const Entry& b) {
  return a.deadline != b.deadline ? a.deadline < b.deadline : a.number < b.number;
}

void Timer::put(std::size_t at, Entry* entry) {
  heap_[at] = entry;
  entry->at = at;
}

void Timer::rise(std::size_t at) {
  Entry* const entry = heap_[at];
  for (; at > 0; at = (at - 1) / 2) {
    Entry* const parent = heap_[(at - 1) / 2];
    if (!before(*entry, *parent)) break;
    put(at, parent);
  }
  put(at, entry);
}

void Timer::sink(std::size_t at) {
  Entry* const entry = heap_[at];
  for (;;) {
    std::size_t child = 2 * at + 1;
    if (child >= heap_.size()) break;
    if (child + 1 < heap_.size() && before(*heap_[child + 1], *heap_[child])) ++child;
    if (!before(*heap_[child], *entry)) break;
    put(at, heap_[child]);
    at = child;
  }
  put(at, entry);
}

void Timer::take(Entry& entry) {
  const std::size_t at = std::exchange(entry.at, kNowhere);
  Entry* const moved = heap_.back();
  heap_.pop_back();
  if (moved == &entry) return;
  put(at, moved);
  rise(at);
  sink(moved->at);
}

}  // namespace atl::runtime
