// Tasks with a handle: two that yield, one spawned and joined, a batch of them, a million that live
// at once.
#pragma once

#include <atomic>
#include <cstddef>
#include <numeric>
#include <vector>

#include "backend.hpp"

namespace atl::perf {

// Two tasks that yield to each other. Returns how often the running task changed; on one worker
// that is every time. Each task calls its loop by `around`.
template <class Runtime, class Around>
long yield_to_each_other(long times, Around around) {
  long switches = 0;
  int last = -1;
  const auto body = [&switches, &last, times, &around](int me) {
    around([&switches, &last, times, me] {
      for (long i = 0; i < times; ++i) {
        switches += last != me ? 1 : 0;
        last = me;
        Runtime::yield();
      }
    });
  };
  auto first = Runtime::spawn([&body] { body(0); });
  auto second = Runtime::spawn([&body] { body(1); });
  first.join();
  second.join();
  return switches;
}
template <class Runtime>
long yield_to_each_other(long times) {
  return yield_to_each_other<Runtime>(times, [](auto&& f) { f(); });
}

// Pair after pair of tasks that yield once, so that each yields to the other (a yield that returns
// at once would not suspend). Returns in how many pairs both tasks had started before one of them
// ended.
template <class Runtime>
long spawn_yielding(long pairs) {
  long interleaved = 0;
  for (long i = 0; i < pairs; ++i) {
    int begun = 0;
    int in_order = 0;
    const auto body = [&begun, &in_order] {
      ++begun;
      Runtime::yield();
      in_order += begun == 2 ? 1 : 0;
    };
    auto first = Runtime::spawn(body);
    auto second = Runtime::spawn(body);
    first.join();
    second.join();
    interleaved += in_order == 2 ? 1 : 0;
  }
  return interleaved;
}

// One task after another, each waiting for a later event, so that it must suspend.
// Returns how many tasks did suspend.
template <class Runtime>
long spawn_waiting(long times) {
  long in_order = 0;
  for (long i = 0; i < times; ++i) {
    typename Runtime::Event event;
    int stage = 0;
    auto task = Runtime::spawn([&event, &stage] {
      stage = 1;
      event.wait();
      stage = stage == 2 ? 3 : -1;
    });
    while (stage != 1) Runtime::yield();
    stage = 2;
    event.set();
    task.join();
    in_order += stage == 3 ? 1 : 0;
  }
  return in_order;
}

// Spawns them all and then joins them in the same order. Returns how many did their work.
template <class Runtime>
long spawn_batch(long tasks) {
  std::vector<unsigned char> done(static_cast<std::size_t>(tasks));
  std::vector<decltype(Runtime::spawn([] {}))> batch;
  batch.reserve(done.size());
  for (unsigned char& mine : done) batch.push_back(Runtime::spawn([&mine] { mine = 1; }));
  for (auto& task : batch) task.join();
  return std::accumulate(done.begin(), done.end(), 0L);
}

// Twice as many tasks as threads, which do nothing but yield. A thread that has none must get some
// from another one, which yields without pause. Returns the yields.
template <class Runtime>
long yield_next_to_idle(int threads, long times) {
  std::atomic<long> yields = 0;
  std::vector<decltype(Runtime::spawn([] {}))> tasks;
  for (int i = 0; i < 2 * threads; ++i) {
    tasks.push_back(Runtime::spawn([&yields, times] {
      for (long at = 0; at < times; ++at) Runtime::yield();
      yields.fetch_add(times, std::memory_order_relaxed);
    }));
  }
  for (auto& task : tasks) task.join();
  return yields.load();
}

struct Crowd {
  long live = 0;  // suspended at once
  long finished = 0;
};

template <class Runtime>
Crowd suspend_all(long tasks) {
  typename Runtime::Event gate;
  std::atomic<long> started = 0;
  std::atomic<long> finished = 0;
  using Task = decltype(Runtime::spawn([] {}));
  std::vector<Task> crowd;
  crowd.reserve(static_cast<std::size_t>(tasks));
  for (long i = 0; i < tasks; ++i) {
    crowd.push_back(Runtime::spawn([&gate, &started, &finished] {
      started.fetch_add(1, std::memory_order_relaxed);
      gate.wait();
      finished.fetch_add(1, std::memory_order_relaxed);
    }));
  }
  while (started.load(std::memory_order_relaxed) != tasks) Runtime::yield();
  const long live = started.load() - finished.load();
  gate.set();
  for (Task& task : crowd) task.join();
  return {live, finished.load()};
}

}  // namespace atl::perf
