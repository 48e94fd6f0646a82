#include "chase_kernels.hpp"

#include <bit>

namespace atl::probe {
namespace {

// splitmix64 (S. Vigna), which derives the multipliers from a seed.
std::uint64_t scramble(std::uint64_t value) {
  value += 0x9e3779b97f4a7c15;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

// The inverse of an odd number modulo 2^64. Newton's iteration doubles the correct bits.
std::uint64_t inverse_of(std::uint64_t odd) {
  std::uint64_t inverse = odd;  // 3 bits are correct
  for (int bits = 3; bits < 64; bits *= 2) inverse *= 2 - odd * inverse;
  return inverse;
}

void** line_at(std::byte* data, std::size_t line) {
  return reinterpret_cast<void**>(data + line * kChaseLineBytes);
}

}  // namespace

ChaseOrder::ChaseOrder(std::size_t lines, std::uint64_t seed)
    : lines_(lines), mask_(std::bit_ceil(std::uint64_t{lines}) - 1) {
  shift_ = (static_cast<unsigned>(std::bit_width(mask_)) + 1) / 2;
  for (std::size_t round = 0; round < kRounds; ++round) {
    odd_[round] = scramble(seed + round) | 1;
    inverse_[round] = inverse_of(odd_[round]);
  }
}

void** chase_build(std::byte* data, const ChaseOrder& order) {
  for (std::size_t line = 0; line < order.lines(); ++line) {
    *line_at(data, line) = line_at(data, order.next(line));
  }
  return line_at(data, order.first());
}

void chase_warm(const std::byte* data, const ChaseOrder& order) {
  // No address depends on earlier loads or results, so the CPU has many loads in flight at once.
  order.for_each([data](std::size_t line) {
    static_cast<void>(
        *reinterpret_cast<const volatile std::uintptr_t*>(data + line * kChaseLineBytes));
  });
}

void** chase_walk(void** at, std::size_t blocks) {
  for (; blocks > 0; --blocks) {
#pragma GCC unroll 32
    for (std::size_t load = 0; load < kChaseUnroll; ++load) at = static_cast<void**>(*at);
    asm volatile("" : "+r"(at));
  }
  return at;
}

void** chase_null_walk(void** at, std::size_t blocks) {
  for (; blocks > 0; --blocks) asm volatile("" : "+r"(at));
  return at;
}

bool chase_verify(const std::byte* data, const ChaseOrder& order, void* const* at) {
  const auto begin = reinterpret_cast<std::uintptr_t>(data);
  const std::size_t offset = reinterpret_cast<std::uintptr_t>(at) - begin;
  const std::size_t line = offset / kChaseLineBytes;
  if (offset % kChaseLineBytes != 0 || line >= order.lines()) return false;
  return reinterpret_cast<std::uintptr_t>(*at) == begin + order.next(line) * kChaseLineBytes;
}

}  // namespace atl::probe
