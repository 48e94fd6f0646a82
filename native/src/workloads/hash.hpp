// The hash of a key, and the random numbers of the data.
#pragma once

#include <cstddef>
#include <cstdint>

namespace atl::workloads {

inline constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15;

// Fibonacci hashing (Knuth, volume 3, section 6.4): the upper bits are the useful ones. Keys that
// follow each other get different upper bits.
constexpr std::uint64_t hash_of(std::int64_t key) {
  return static_cast<std::uint64_t>(key) * kGolden;
}

// The upper `bits` of a hash; bits from 1 to 63.
constexpr std::size_t upper(std::uint64_t hash, int bits) { return hash >> (64 - bits); }

// splitmix64's finaliser (Steele et al., "Fast Splittable Pseudorandom Number Generators", OOPSLA
// 2014): a bijection whose outputs for successive inputs pass as random.
constexpr std::uint64_t mixed(std::uint64_t word) {
  word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9;
  word = (word ^ (word >> 27)) * 0x94d049bb133111eb;
  return word ^ (word >> 31);
}

// A number below `bound`, which is below 2^32, from 64 random bits: the upper half of their product
// (Lemire, 2019), of whose parts none overflows. The bias is at most bound / 2^64.
constexpr std::uint64_t below(std::uint64_t random, std::uint64_t bound) {
  const std::uint64_t lower = random & 0xffffffff;
  return ((random >> 32) * bound + ((lower * bound) >> 32)) >> 32;
}

}  // namespace atl::workloads
