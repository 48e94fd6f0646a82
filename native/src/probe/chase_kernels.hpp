// A pointer chase: dependent loads, one a cache line, in an order that no prefetcher follows.
//
// As lat_mem_rd and Intel MLC do it (L. McVoy and C. Staelin, "lmbench", 1996): each line holds
// the address of the next, so a load's time is a latency. The order is one cycle through all
// lines. Sattolo's algorithm would give one too, but it writes at random places and takes seconds
// for 1 GiB. Shuffling within blocks is quick, but then the neighbour that the spatial prefetcher
// fetches is used before it is evicted, and half of the latency is gone. So the order is computed:
// line PI(0), PI(1), ... where PI mixes the bits of a number and can be undone (multiplications by
// odd numbers and xor-shifts, each of them a bijection on m bits; numbers past the last line are
// skipped). A line's successor is PI(PI^-1(line) + 1): the lines are written one after another,
// at the memory's speed, and that it is one full cycle needs no proof beyond PI's being a
// bijection. And the last lines before any point of the walk are known, so caches can be brought
// into the state that the walk itself would leave, with many loads in flight.
//
// Without huge pages a set larger than what the TLBs cover has page walks in its figure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace atl::probe {

inline constexpr std::size_t kChaseLineBytes = 64;

// The bijection: position in the walk to line, and back.
class ChaseOrder {
 public:
  // `lines` at least 1.
  ChaseOrder(std::size_t lines, std::uint64_t seed);

  [[nodiscard]] std::size_t lines() const { return lines_; }
  // The line at which the walk stands first.
  [[nodiscard]] std::size_t first() const { return advance(~std::uint64_t{0}); }
  [[nodiscard]] std::size_t next(std::size_t line) const { return advance(unmix(line)); }
  // All lines in the order of the walk.
  template <typename Visit>
  void for_each(Visit visit) const {
    for (std::uint64_t position = 0; position <= mask_; ++position) {
      const std::uint64_t line = mix(position);
      if (line < lines_) visit(static_cast<std::size_t>(line));
    }
  }

 private:
  static constexpr std::size_t kRounds = 3;

  [[nodiscard]] std::uint64_t mix(std::uint64_t value) const {
    for (std::size_t round = 0; round < kRounds; ++round) {
      value ^= value >> shift_;
      value = (value * odd_[round]) & mask_;
    }
    return value ^ (value >> shift_);
  }
  [[nodiscard]] std::uint64_t unmix(std::uint64_t value) const {
    value ^= value >> shift_;  // its own inverse: shift_ is at least half of the bits
    for (std::size_t round = kRounds; round-- > 0;) {
      value = (value * inverse_[round]) & mask_;
      value ^= value >> shift_;
    }
    return value;
  }
  [[nodiscard]] std::size_t advance(std::uint64_t position) const {
    std::uint64_t line;
    do {
      position = (position + 1) & mask_;
      line = mix(position);
    } while (line >= lines_);
    return line;
  }

  std::size_t lines_;
  std::uint64_t mask_;
  unsigned shift_;
  std::array<std::uint64_t, kRounds> odd_{};
  std::array<std::uint64_t, kRounds> inverse_{};
};

// Writes each line's first word: the address of its successor. Returns where the walk begins.
void** chase_build(std::byte* data, const ChaseOrder& order);

// Reads all lines once in the order of the walk, ending before its begin: what the caches hold
// then is what a whole round of the walk leaves.
void chase_warm(const std::byte* data, const ChaseOrder& order);

// `blocks` times kChaseUnroll dependent loads; returns where the walk stands.
inline constexpr std::size_t kChaseUnroll = 32;
[[nodiscard]] void** chase_walk(void** at, std::size_t blocks);
// The same loop without its loads.
[[nodiscard]] void** chase_null_walk(void** at, std::size_t blocks);

// Whether `at` is a line whose successor is the right one.
[[nodiscard]] bool chase_verify(const std::byte* data, const ChaseOrder& order, void* const* at);

}  // namespace atl::probe
