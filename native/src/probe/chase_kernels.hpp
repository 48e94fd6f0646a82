// A pointer chase: dependent loads, one a cache line, in an order that no prefetcher follows.
//
// Like lat_mem_rd and Intel MLC (L. McVoy and C. Staelin, "lmbench", 1996): each line contains the
// address of the next, so the time of a load is a latency. The order is one cycle through all
// lines. Sattolo's algorithm also gives one cycle, but it writes at random places and takes
// seconds for 1 GiB. Shuffling within blocks is fast, but then the CPU uses the neighbour that the
// spatial prefetcher fetches before it is evicted, and half of the latency is gone. So the order
// is computed as line PI(0), PI(1), ... where PI mixes the bits of a number and is invertible
// (multiplications by odd numbers and xor-shifts, each a bijection on m bits; numbers past the
// last line are skipped). The successor of a line is PI(PI^-1(line) + 1). The lines are therefore
// written in sequence, at the memory's speed, and because PI is a bijection the walk is one full
// cycle. The lines before any point of the walk are also known, so the caches can be brought
// into the state that the walk would leave, with many loads in flight.
//
// Without huge pages the latency of a set larger than the reach of the TLBs includes page walks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace atl::probe {

inline constexpr std::size_t kChaseLineBytes = 64;

// The bijection between positions in the walk and lines.
class ChaseOrder {
 public:
  // `lines` must be at least 1.
  ChaseOrder(std::size_t lines, std::uint64_t seed);

  [[nodiscard]] std::size_t lines() const { return lines_; }
  // The first line of the walk.
  [[nodiscard]] std::size_t first() const { return advance(~std::uint64_t{0}); }
  [[nodiscard]] std::size_t next(std::size_t line) const { return advance(unmix(line)); }
  // All lines in walk order.
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

// Writes the successor's address into each line's first word. Returns the start of the walk.
void** chase_build(std::byte* data, const ChaseOrder& order);

// Reads all lines once in walk order, ending before the start. The caches then contain what a whole
// round of the walk leaves.
void chase_warm(const std::byte* data, const ChaseOrder& order);

// Executes `blocks` times kChaseUnroll dependent loads; returns the new position of the walk.
inline constexpr std::size_t kChaseUnroll = 32;
[[nodiscard]] void** chase_walk(void** at, std::size_t blocks);
// The same loop without the loads.
[[nodiscard]] void** chase_null_walk(void** at, std::size_t blocks);

// Whether `at` is a line with the right successor.
[[nodiscard]] bool chase_verify(const std::byte* data, const ChaseOrder& order, void* const* at);

}  // namespace atl::probe
