// parallel_for: runs a body for each number, each element, or each piece of the range.
#include <atoll/runtime.hpp>
#include <cstddef>
#include <cstdio>
#include <vector>

int main() {
  atl::Runtime runtime;
  std::vector<double> a(1'000'000), b(a.size(), 2), c(a.size(), 1);
  std::size_t wrong = 0;
  runtime.run([&] {
    atl::parallel_for(std::size_t{0}, a.size(), [&](std::size_t i) { a[i] = 3 * b[i] + c[i]; });
    atl::parallel_for(a.begin(), a.end(), [](double& element) { element += 1; });
    // Pieces of at least 1000: for state that is set up once and used for many items.
    atl::parallel_for(
        std::size_t{0}, a.size(),
        [&](std::size_t first, std::size_t last) {
          const double scale = 0.5;
          for (std::size_t i = first; i < last; ++i) a[i] *= scale;
        },
        1000);
  });
  for (const double element : a) wrong += element != 4;
  std::printf("%zu of %zu elements are wrong\n", wrong, a.size());
  return wrong == 0 ? 0 : 1;
}
