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
  runtime.run([&] {
    // Each element by a worker of its node.
    atl::parallel_for(rows, [](long& row) { row *= 2; });
  });

  // A copy on each node, for data that all read and few write.
  atl::Replicated<int> offsets(1'000, map);
  offsets.update([](std::span<int> copy) { copy[7] = 42; });

  // Any std container, on a node.
  std::pmr::vector<int> found(&atl::local_memory(map.nodes.front()));
  found.push_back(offsets.local()[7]);

  const long sum = std::accumulate(rows.begin(), rows.end(), 0L);
  std::printf("sum %ld over %d parts\n", sum, rows.parts());
  return sum == 999'999'000'000 && found.front() == 42 ? 0 : 1;
}
