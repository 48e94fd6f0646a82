// all_do: runs a call once on every worker, or on every worker of a group or place.
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

  // In a group: its ranks, their number, and a barrier of all of them.
  atl::Group query(runtime, {.threads = 2});
  std::vector<long> sums(2);
  long total = 0;
  query.all_do([&](int rank, int size, atl::Barrier& barrier) {
    for (int i = rank; i < 1000; i += size) sums[static_cast<std::size_t>(rank)] += i;
    barrier.arrive_and_wait();  // all have added
    if (rank == 0) total = sums[0] + sums[1];
  });

  std::printf("called once on each worker: %d; sum %ld\n", once_each, total);
  return once_each && total == 499500 ? 0 : 1;
}
