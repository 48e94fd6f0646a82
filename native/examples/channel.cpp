// A channel: producers that are faster than their consumer wait until there is room.
#include <atoll/runtime.hpp>
#include <cstdio>
#include <optional>

int main() {
  atl::Runtime runtime;
  atl::Channel<int> batches(4);
  const int sum = runtime.run([&] {
    auto consumer = atl::spawn([&] {
      int total = 0;
      while (const std::optional<int> batch = batches.pop()) total += *batch;
      return total;
    });
    atl::Scope producers;
    for (int producer = 0; producer < 3; ++producer) {
      producers.fork([&] {
        for (int batch = 1; batch <= 100; ++batch) batches.push(batch);
      });
    }
    producers.join();
    batches.close();  // the consumer gets what is left, and then nothing
    return consumer.join();
  });
  std::printf("sum %d\n", sum);
  return sum == 3 * 5050 ? 0 : 1;
}
