// A latch: waits until a number of things are done, by any thread or task.
#include <atoll/runtime.hpp>
#include <cstdio>
#include <vector>

int main() {
  atl::Runtime runtime;
  constexpr int kParts = 8;
  std::vector<int> loaded(kParts);
  int sum = 0;
  atl::Latch all_loaded(kParts);
  for (int part = 0; part < kParts; ++part) {
    runtime
        .spawn([&, part] {
          loaded[static_cast<std::size_t>(part)] = part;
          all_loaded.count_down();
        })
        .detach();
  }
  all_loaded.wait();  // this thread is not a worker, so it sleeps; a task would be suspended
  for (const int part : loaded) sum += part;
  std::printf("sum %d\n", sum);
  return sum == 28 ? 0 : 1;
}
