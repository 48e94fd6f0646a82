#include "vector_kernels.hpp"

#include <algorithm>
#include <cstring>

namespace atl::probe {
namespace {

using Words = std::uint64_t __attribute__((vector_size(16)));
constexpr std::size_t kUnroll = 4;
constexpr std::size_t kBlock = kUnroll * sizeof(Words);
constexpr std::uint64_t kEveryByte = 0x0101010101010101;

}  // namespace

void vector_write(std::byte* data, std::size_t bytes, std::uint8_t value) {
  const std::uint64_t word = value * kEveryByte;
  const Words words = {word, word};
  std::size_t at = 0;
  for (; at + kBlock <= bytes; at += kBlock) {
#pragma GCC unroll 4
    for (std::size_t u = 0; u < kUnroll; ++u) {
      std::memcpy(data + at + u * sizeof words, &words, sizeof words);
    }
    // Opaque, so that the loop does not become a call of memset, which chooses its own stores.
    asm volatile("" ::: "memory");
  }
  for (; at + sizeof word <= bytes; at += sizeof word) std::memcpy(data + at, &word, sizeof word);
  for (; at < bytes; ++at) data[at] = std::byte{value};
  asm volatile("" ::: "memory");
}

std::uint64_t vector_read(const std::byte* data, std::size_t bytes) {
  Words sums[kUnroll] = {};
  std::size_t at = 0;
  for (; at + kBlock <= bytes; at += kBlock) {
#pragma GCC unroll 4
    for (std::size_t u = 0; u < kUnroll; ++u) {
      Words words;
      std::memcpy(&words, data + at + u * sizeof words, sizeof words);
      sums[u] += words;
    }
  }
  std::uint64_t sum = 0;
  for (const Words& part : sums) sum += part[0] + part[1];
  for (; at + sizeof sum <= bytes; at += sizeof sum) {
    std::uint64_t word;
    std::memcpy(&word, data + at, sizeof word);
    sum += word;
  }
  for (; at < bytes; ++at) sum += std::to_integer<std::uint64_t>(data[at]);
  // Forces the next pass to read again.
  asm volatile("" : "+r"(sum)::"memory");
  return sum;
}

void vector_null(std::size_t bytes) {
  std::size_t at = 0;
  for (; at + kBlock <= bytes; at += kBlock) asm volatile("" : "+r"(at));
  for (; at + sizeof(std::uint64_t) <= bytes; at += sizeof(std::uint64_t)) {
    asm volatile("" : "+r"(at));
  }
  for (; at < bytes; ++at) asm volatile("" : "+r"(at));
}

bool vector_verify(const std::byte* data, std::size_t bytes, std::uint8_t value) {
  return std::all_of(data, data + bytes, [value](std::byte b) { return b == std::byte{value}; });
}

std::uint64_t vector_sum(std::size_t bytes, std::uint8_t value) {
  return bytes / sizeof(std::uint64_t) * (value * kEveryByte) +
         bytes % sizeof(std::uint64_t) * value;
}

}  // namespace atl::probe
