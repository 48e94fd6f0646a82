#include "callers.hpp"

#include <algorithm>

#include "scheduler/affinity.hpp"

namespace atl::duckdb {

using runtime::bind_thread;

void Callers::seat(std::vector<int> alone, std::vector<int> several) {
  const std::lock_guard lock(mutex_);
  alone_ = std::move(alone);
  several_ = std::move(several);
  bind_others(0);
}

void Callers::enter() {
  const int tid = runtime::this_thread();
  const std::lock_guard lock(mutex_);
  const auto here = std::ranges::find(inside_, tid, &Inside::tid);
  if (here != inside_.end()) {
    ++here->depth;
    return;
  }
  inside_.push_back({tid, 1, {}, {}});
  bind(inside_.back());
  if (inside_.size() == 2) bind_others(tid);  // the first is no longer alone
}

void Callers::leave() noexcept {
  const int tid = runtime::this_thread();
  const std::lock_guard lock(mutex_);
  const auto here = std::ranges::find(inside_, tid, &Inside::tid);
  if (here == inside_.end() || --here->depth > 0) return;
  if (!here->before.empty()) {
    follow(*here);
    bind_thread(tid, here->before);
  }
  inside_.erase(here);
  if (inside_.size() == 1) bind_others(tid);
}

std::vector<Callers::Caller> Callers::now() const {
  const std::lock_guard lock(mutex_);
  std::vector<Caller> found;
  for (const Inside& caller : inside_) {
    found.push_back({caller.tid, caller.before.empty() ? std::vector<int>{} : cpus()});
  }
  return found;
}

// Leaves a thread alone if its mask is unknown (it has none, or /proc does not show it).
void Callers::bind(Inside& caller) const {
  if (!caller.before.empty()) follow(caller);
  if (cpus().empty()) {
    if (!caller.before.empty()) bind_thread(caller.tid, caller.before);
    caller.before.clear();
    return;
  }
  if (caller.before.empty()) caller.before = runtime::cpus_of_thread(caller.tid);
  if (!caller.before.empty() && !bind_thread(caller.tid, cpus())) caller.before.clear();
  caller.bound = cpus();
}

// If another program gave the thread a mask during its call (taskset), that mask becomes the
// thread's own. A cpuset removes CPUs from our mask and adds none.
void Callers::follow(Inside& caller) {
  std::vector<int> now = runtime::cpus_of_thread(caller.tid);
  if (!now.empty() && !std::ranges::includes(caller.bound, now)) caller.before = std::move(now);
}

void Callers::bind_others(int tid) {
  for (Inside& caller : inside_) {
    if (caller.tid != tid) bind(caller);
  }
}

}  // namespace atl::duckdb
