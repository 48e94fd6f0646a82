// A time limit for a part of a task: its loops end early, and the task goes on.
#include <atoll/runtime.hpp>
#include <atomic>
#include <chrono>
#include <cstdio>

int main() {
  atl::Runtime runtime;
  std::atomic<long> rows = 0;
  const bool timed_out = runtime.run([&] {
    try {
      atl::Stoppable query(std::chrono::milliseconds(20));
      atl::parallel_for(0L, 1'000'000'000'000, [&](long) { ++rows; });
      return false;
    } catch (const atl::Stopped&) {
      return true;  // the pieces that ran are done, the others were left out
    }
  });
  std::printf("timed out after %ld rows: %d\n", rows.load(), timed_out);
  return timed_out && rows > 0 ? 0 : 1;
}
