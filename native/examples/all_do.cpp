// all_do: runs a call once on every worker.
#include <algorithm>
#include <atoll/runtime.hpp>
#include <cstdio>
#include <vector>

int main() {
  atl::Runtime runtime({.workers = 4});
  std::vector<int> calls(4);
  runtime.run([&] {
    // The calls run at the same time, so each uses its own element.
    atl::all_do([&](int worker) { ++calls[static_cast<std::size_t>(worker)]; });
  });
  const bool once_each = std::ranges::count(calls, 1) == 4;
  std::printf("called once on each worker: %d\n", once_each);
  return once_each ? 0 : 1;
}
