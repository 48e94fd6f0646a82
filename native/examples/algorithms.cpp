// Invoke, scan and sort: a radix partition of rows by the last byte of their key.
#include <algorithm>
#include <atoll/runtime.hpp>
#include <cstddef>
#include <cstdio>
#include <functional>
#include <vector>

int main() {
  atl::Runtime runtime;
  std::vector<unsigned> keys(200'000);
  for (std::size_t i = 0; i < keys.size(); ++i) keys[i] = static_cast<unsigned>(i * 2'654'435'761);
  std::vector<unsigned> sorted = keys;
  std::vector<std::size_t> counts(256);
  std::vector<std::size_t> offsets(256);
  std::size_t rows = 0;
  runtime.run([&] {
    // Two things at once.
    atl::parallel_invoke(
        [&] {
          for (const unsigned key : keys) ++counts[key % 256];
        },
        [&] { atl::parallel_sort(sorted.begin(), sorted.end(), std::greater<>()); });
    // Where each of the 256 partitions begins; returns how many rows there are.
    rows = atl::parallel_exclusive_scan(counts.begin(), counts.end(), offsets.begin(), rows);
  });
  const bool right = std::is_sorted(sorted.begin(), sorted.end(), std::greater<>()) &&
                     rows == keys.size() && offsets[1] == counts[0];
  std::printf("%zu rows, sorted: %d\n", rows, right);
  return right ? 0 : 1;
}
