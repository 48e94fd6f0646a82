// A barrier: tasks that proceed step by step together, here averaging neighbours repeatedly.
#include <atoll/runtime.hpp>
#include <cstddef>
#include <cstdio>
#include <utility>
#include <vector>

int main() {
  constexpr std::size_t kParts = 4, kPerPart = 100, kItems = kParts * kPerPart;
  std::vector<double> now(kItems, 0), next(kItems, 0);
  now[0] = next[0] = 1;  // the ends do not change

  atl::Runtime runtime;
  runtime.run([&] {
    atl::Barrier barrier(kParts, [&] { std::swap(now, next); });  // run by the last to arrive
    atl::Scope scope;
    for (std::size_t part = 0; part < kParts; ++part) {
      scope.fork([&, part] {
        for (int step = 0; step < 500; ++step) {
          for (std::size_t i = part * kPerPart; i < (part + 1) * kPerPart; ++i) {
            if (i > 0 && i + 1 < kItems) next[i] = (now[i - 1] + now[i + 1]) / 2;
          }
          barrier.arrive_and_wait();
        }
      });
    }
    scope.join();
  });

  // The same computation in one thread.
  std::vector<double> expected(kItems, 0), other(kItems, 0);
  expected[0] = other[0] = 1;
  for (int step = 0; step < 500; ++step) {
    for (std::size_t i = 1; i + 1 < kItems; ++i) other[i] = (expected[i - 1] + expected[i + 1]) / 2;
    std::swap(expected, other);
  }
  std::printf("%s\n", now == expected ? "as in one thread" : "wrong");
  return now == expected ? 0 : 1;
}
