// spawn: a task with a handle that can be moved, joined from anywhere, or detached.
#include <atoll/runtime.hpp>
#include <atomic>
#include <cstdio>
#include <stdexcept>
#include <vector>

// The sum of the squares of 1 to n, one task for each.
long sum_of_squares(int n) {
  std::vector<atl::Task<long>> tasks;
  for (long i = 1; i <= n; ++i) tasks.push_back(atl::spawn([i] { return i * i; }));
  long sum = 0;
  for (auto& task : tasks) sum += task.join();
  return sum;
}

// join rethrows the exception of a task.
bool exceptions_travel() {
  auto task = atl::spawn([]() -> int { throw std::runtime_error("no such table"); });
  try {
    task.join();
  } catch (const std::runtime_error&) {
    return true;
  }
  return false;
}

int main() {
  std::atomic<bool> logged{false};
  bool right = false;
  {
    atl::Runtime runtime;
    // Outside the workers use runtime.spawn, inside a task atl::spawn.
    auto sum = runtime.spawn([] { return sum_of_squares(100); });
    right = sum.join() == 338350 && runtime.run(exceptions_travel);
    runtime.spawn([&] { logged = true; }).detach();
  }  // also waits for detached tasks
  std::printf("%s\n", right && logged ? "as expected" : "wrong");
  return right && logged ? 0 : 1;
}
