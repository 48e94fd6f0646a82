// all_do: the same on every worker, once.
#include <algorithm>
#include <atoll/runtime.hpp>
#include <cstdio>
#include <vector>

int main() {
  atl::Runtime runtime({.workers = 4});
  std::vector<int> calls(4);
  runtime.run([&] {
    // All at the same time, so each has an element of its own.
    atl::all_do([&](int worker) { ++calls[static_cast<std::size_t>(worker)]; });
  });
  const bool once_each = std::ranges::count(calls, 1) == 4;
  std::printf("called once on each worker: %d\n", once_each);
  return once_each ? 0 : 1;
}
