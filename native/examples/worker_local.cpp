// A value per worker: each counts apart, and the counts are combined at the end.
#include <array>
#include <atoll/runtime.hpp>
#include <cstdio>

using Histogram = std::array<long, 10>;

int main() {
  atl::Runtime runtime;
  const Histogram all = runtime.run([] {
    atl::WorkerLocal<Histogram> counts([] { return Histogram{}; });
    atl::parallel_for(0, 1'000'000, [&](int first, int last) {
      const auto mine = counts.lease();  // nobody else has it until the end of this piece
      for (int i = first; i < last; ++i) ++mine->at(static_cast<std::size_t>(i % 10));
    });
    return counts.combine([](Histogram sum, const Histogram& more) {
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += more[i];
      return sum;
    });
  });
  std::printf("%ld of each\n", all[0]);
  return all == Histogram{100'000, 100'000, 100'000, 100'000, 100'000,
                          100'000, 100'000, 100'000, 100'000, 100'000}
             ? 0
             : 1;
}
