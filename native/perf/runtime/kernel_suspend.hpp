// Tasks that suspend: two that yield, one spawned and joined, a million that live at once.
#pragma once

#include <atomic>
#include <cstddef>
#include <vector>

#include "backend.hpp"

namespace atl::perf {

// Two tasks that yield to each other. Returns how often the running task changed; on one worker
// that is every time.
template <class Runtime>
long yield_to_each_other(long times) {
  long switches = 0;
  int last = -1;
  const auto body = [&switches, &last, times](int me) {
    for (long i = 0; i < times; ++i) {
      switches += last != me ? 1 : 0;
      last = me;
      Runtime::yield();
    }
  };
  auto first = Runtime::spawn([&body] { body(0); });
  auto second = Runtime::spawn([&body] { body(1); });
  first.join();
  second.join();
  return switches;
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
