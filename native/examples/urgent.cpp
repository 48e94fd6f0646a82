// A short query next to a long scan: it begins between two pieces of the scan.
#include <atoll/runtime.hpp>
#include <atomic>
#include <cstdio>
#include <thread>

int main() {
  atl::Runtime runtime({.workers = 1});
  std::atomic<bool> scans = false;
  std::atomic<bool> answered = false;
  auto scan = runtime.spawn([&] {
    atl::Stoppable rows;  // a scan without end, so that only the query can end it
    try {
      atl::parallel_for(0L, 1'000'000'000'000, [&](long) {
        scans = true;
        if (answered) rows.request_stop();
      });
    } catch (const atl::Stopped&) {
    }
  });
  while (!scans) std::this_thread::yield();
  auto query = runtime.spawn(atl::urgently(), [&] {
    answered = true;
    return 42;
  });
  const int answer = query.join();
  scan.join();
  std::printf("%d, while the scan ran\n", answer);
  return answer == 42 ? 0 : 1;
}
