#include "sign_flip.hpp"

#include <cmath>

namespace atl::runtime {

double sign_flip_p(std::span<const double> differences) {
  double seen = 0;
  double size = 0;
  for (const double difference : differences) {
    seen += difference;
    size += std::abs(difference);
  }
  // Sums that are equal on paper differ by rounding, and must count as at least the one seen.
  const double tie = 1e-9 * size;
  const std::size_t ways = std::size_t{1} << differences.size();
  std::size_t as_large = 0;
  for (std::size_t signs = 0; signs < ways; ++signs) {
    double sum = 0;
    for (std::size_t i = 0; i < differences.size(); ++i) {
      sum += (signs >> i & 1) != 0 ? -differences[i] : differences[i];
    }
    if (sum >= seen - tie) ++as_large;
  }
  return static_cast<double>(as_large) / static_cast<double>(ways);
}

}  // namespace atl::runtime
