// spawn: a task with a handle that can be moved, joined from anywhere, or left alone.
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

// What a task throws comes out of join.
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
    // From a thread that is no worker: by the runtime. Inside a task: atl::spawn.
    auto sum = runtime.spawn([] { return sum_of_squares(100); });
    right = sum.join() == 338350 && runtime.run(exceptions_travel);
    runtime.spawn([&] { logged = true; }).detach();
  }  // waits for detached tasks, too
  std::printf("%s\n", right && logged ? "as expected" : "wrong");
  return right && logged ? 0 : 1;
}
