// Memory near the workers: arrays and containers whose pages are on chosen nodes.
#include <atoll/runtime.hpp>
#include <cstddef>
#include <cstdio>
#include <memory_resource>
#include <numeric>
#include <span>
#include <vector>

int main() {
  atl::Runtime runtime;
  const atl::NodeMap map = runtime.node_map();

  // One part per worker, on the worker's node; it follows the worker when that moves.
  auto rows = atl::Array<long>::partitioned(1'000'000, map);
  std::iota(rows.begin(), rows.end(), 0);
  std::vector<long> sums(static_cast<std::size_t>(rows.parts()));
  runtime.run([&] {
    atl::Scope scope;
    for (int rank = 0; rank < rows.parts(); ++rank) {
      scope.fork([&, rank] {
        const std::span<const long> part = rows.part(rank);
        sums[static_cast<std::size_t>(rank)] = std::accumulate(part.begin(), part.end(), 0L);
      });
    }
    scope.join();
  });

  // A copy on each node, for data that all read and few write.
  atl::Replicated<int> offsets(1'000, map);
  offsets.update([](std::span<int> copy) { copy[7] = 42; });

  // Any std container, on a node.
  std::pmr::vector<int> found(&atl::local_memory(map.nodes.front()));
  found.push_back(offsets.local()[7]);

  const long sum = std::accumulate(sums.begin(), sums.end(), 0L);
  std::printf("sum %ld over %d parts\n", sum, rows.parts());
  return sum == 499'999'500'000 && found.front() == 42 ? 0 : 1;
}
