// A semaphore: of many tasks at most three read at a time.
#include <algorithm>
#include <atoll/runtime.hpp>
#include <atomic>
#include <cstdio>

int main() {
  atl::Runtime runtime;
  atl::Semaphore readers(3);
  std::atomic<int> inside{0}, most{0};
  runtime.run([&] {
    atl::Scope scope;
    for (int task = 0; task < 50; ++task) {
      scope.fork([&] {
        readers.acquire();
        const int now = ++inside;
        for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);) {
        }
        atl::yield();  // others get their turn meanwhile
        --inside;
        readers.release();
      });
    }
    scope.join();
  });
  std::printf("at most %d at a time\n", most.load());
  return most <= 3 ? 0 : 1;
}
