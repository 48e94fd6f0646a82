#include "atoll/runtime/blocking.hpp"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <new>
#include <span>
#include <utility>
#include <vector>

#include "scheduler/affinity.hpp"
#include "scheduler/helper_thread.hpp"
#include "scheduler/worker.hpp"

namespace atl::runtime {

namespace {

constexpr int kMostThreads = 256;
constexpr auto kIdle = std::chrono::seconds(5);

// On the frame of the task that waits for it.
struct Section {
  void (*call)(void*);
  void* closure;
  std::span<const int> cpus;  // of the caller's node; empty: where it is
  detail::Waiter waiter = detail::Waiter::none;
  Section* next = nullptr;
};

// Never destroyed: a static runtime may still wait for its tasks at the end.
class Pool {
 public:
  static Pool& instance();

  // Makes sure that a thread will run one more section. Throws RuntimeFault if none can be started.
  void expect_one();
  void expect_one_less();
  void submit(Section& section);

 private:
  void serve();
  bool take(Section*& section);

  std::mutex mutex_;
  std::condition_variable submitted_;
  Section* first_ = nullptr;
  Section** last_ = &first_;
  int expected_ = 0;  // sections: announced, in line, or running
  int threads_ = 0;   // at least as many as are expected, up to the limit
};

alignas(Pool) std::byte storage[sizeof(Pool)];

Pool& Pool::instance() {
  [[maybe_unused]] static const bool once = [] {
    ::new (storage) Pool;
    // A child of fork() has none of the threads and no waiters.
    pthread_atfork(nullptr, nullptr, [] { ::new (storage) Pool; });
    return true;
  }();
  return *std::launder(reinterpret_cast<Pool*>(storage));
}

void Pool::expect_one() {
  const std::lock_guard lock(mutex_);
  if (expected_ >= threads_ && threads_ < kMostThreads) {
    try {
      start_helper_thread("a blocking section", [this] { serve(); });
      ++threads_;
    } catch (const RuntimeFault&) {
      if (threads_ == 0) throw;  // else the existing threads will run it
    }
  }
  ++expected_;
}

void Pool::expect_one_less() {
  const std::lock_guard lock(mutex_);
  --expected_;
}

void Pool::submit(Section& section) {
  {
    const std::lock_guard lock(mutex_);
    *last_ = &section;
    last_ = &section.next;
  }
  submitted_.notify_one();
}

void Pool::serve() {
  std::vector<int> cpus;
  Section* section = nullptr;
  while (take(section)) {
    if (!section->cpus.empty() && !std::ranges::equal(section->cpus, cpus)) {
      cpus.assign(section->cpus.begin(), section->cpus.end());
      bind_thread(this_thread(), cpus);
    }
    const detail::Waiter waiter = section->waiter;
    section->call(section->closure);
    expect_one_less();
    detail::resume(waiter);  // the section is gone
  }
}

bool Pool::take(Section*& section) {
  std::unique_lock lock(mutex_);
  while (first_ == nullptr) {
    const bool idle = submitted_.wait_for(lock, kIdle) == std::cv_status::timeout;
    if (idle && first_ == nullptr && expected_ < threads_) {
      --threads_;
      return false;
    }
  }
  section = first_;
  first_ = section->next;
  if (first_ == nullptr) last_ = &first_;
  return true;
}

}  // namespace

}  // namespace atl::runtime

namespace atl::detail {

void run_blocking(void (*call)(void* closure), void* closure) {
  const runtime::Worker* const worker = runtime::Worker::here();
  if (worker == nullptr) return call(closure);
  runtime::Section section{call, closure, worker->team.seats.cpus_near(worker->core())};
  runtime::Pool& pool = runtime::Pool::instance();
  pool.expect_one();
  try {
    suspend([&](Waiter handle) {
      section.waiter = handle;
      pool.submit(section);
      return true;
    });
  } catch (...) {  // no stack to continue on
    pool.expect_one_less();
    throw;
  }
}

}  // namespace atl::detail
