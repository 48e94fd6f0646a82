// The pseudorandom sequence of the HPC Challenge: x^n in GF(2)[x], modulo x^64 + x^2 + x + 1.
#pragma once

#include <cstdint>

namespace atl::kernels {

inline std::uint64_t after(std::uint64_t value) {
  constexpr std::uint64_t kReduced = 7;  // x^64
  return (value << 1) ^ ((0 - (value >> 63)) & kReduced);
}

inline std::uint64_t product(std::uint64_t left, std::uint64_t right) {
  std::uint64_t sum = 0;
  for (; right != 0; right >>= 1, left = after(left)) sum ^= (right & 1) != 0 ? left : 0;
  return sum;
}

// x^n, by squaring: some 10 us.
inline std::uint64_t start(std::uint64_t n) {
  std::uint64_t power = 1;
  for (std::uint64_t square = 2; n != 0; n >>= 1, square = product(square, square)) {
    if ((n & 1) != 0) power = product(power, square);
  }
  return power;
}

}  // namespace atl::kernels
