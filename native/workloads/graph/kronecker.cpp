#include "graph/kronecker.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "workloads/hash.hpp"

namespace atl::kernels {
namespace {

using workloads::kGolden;

// Random numbers by their place: splitmix64 (Steele et al., "Fast Splittable Pseudorandom Number
// Generators", OOPSLA 2014) gives the columns, and what it has before its last product the chances.
constexpr std::uint64_t kMixed1 = 0xbf58476d1ce4e5b9;
constexpr std::uint64_t kMixed2 = 0x94d049bb133111eb;

// Odd, so that their products can be undone; the best of 6,000 pairs: in graphs of scale 16 to 24
// the logarithms of the degrees of vertices a power of two apart have a correlation below 0.1.
constexpr std::uint32_t kRename1 = 0x3e4f87ad;
constexpr std::uint32_t kRename2 = 0x1b7c4b2d;

std::uint32_t reversed(std::uint32_t word) {
  word = (word >> 1 & 0x55555555) | (word & 0x55555555) << 1;
  word = (word >> 2 & 0x33333333) | (word & 0x33333333) << 2;
  word = (word >> 4 & 0x0f0f0f0f) | (word & 0x0f0f0f0f) << 4;
  return __builtin_bswap32(word);
}

}  // namespace

Kronecker::Table Kronecker::table(std::size_t number) {
  constexpr double kQuadrants[] = {0.57, 0.19, 0.19, 0.05};
  constexpr int kUnits = 256;  // of a column
  // How many units of all columns each block has: the sums of probabilities are rounded, each table
  // by another amount, so that all tables' units together are a block's share of 2^20.
  std::array<int, kBlocks> units;
  double sum = 0;
  int before = 0;
  for (unsigned block = 0; block < kBlocks; ++block) {
    double share = 1;
    for (unsigned level = 0; level < 3; ++level) {
      share *= kQuadrants[(block >> (level + 3) & 1) * 2 + (block >> level & 1)];
    }
    sum += share;
    const auto all = std::llround(sum * (kBlocks * kUnits * kTables));
    const int until = static_cast<int>((all + static_cast<long long>(number)) / kTables);
    units[block] = until - before;
    before = until;
  }
  // Columns that need less than they have take from one that needs more.
  Table made{};
  std::vector<unsigned> less;
  std::vector<unsigned> more;
  for (unsigned block = 0; block < kBlocks; ++block) {
    (units[block] < kUnits ? less : more).push_back(block);
  }
  while (!less.empty()) {
    const unsigned column = less.back();
    less.pop_back();
    const unsigned giver = more.back();
    made.own[column] = static_cast<std::uint8_t>(units[column]);
    made.other[column] = static_cast<std::uint8_t>(giver);
    units[giver] -= kUnits - units[column];
    if (units[giver] >= kUnits) continue;
    more.pop_back();
    less.push_back(giver);
  }
  for (const unsigned column : more) made.other[column] = static_cast<std::uint8_t>(column);
  return made;
}

Kronecker::Kronecker(int scale, std::uint64_t seed)
    : scale_(scale),
      mask_(~std::uint32_t{0} << (32 - scale)),
      flip_(static_cast<std::uint32_t>(workloads::mixed(seed + kGolden)) << (32 - scale)) {
  for (std::size_t number = 0; number < kTables; ++number) tables_[number] = table(number);
  for (std::size_t number = 0; number < streams_.size(); ++number) {
    streams_[number] = workloads::mixed(workloads::mixed(seed) + (number + 1) * kGolden);
  }
}

Kronecker::Upper Kronecker::draws(std::uint64_t edge, std::size_t half) const {
  const Table& table = table_of(edge);
  std::uint64_t chances = streams_[half] + edge * kGolden;
  chances = (chances ^ (chances >> 30)) * kMixed1;
  chances ^= chances >> 27;
  std::uint64_t columns = chances * kMixed2;
  columns ^= columns >> 31;
  Upper upper{};
  for (int draw = 0; draw < 8; ++draw, columns >>= 8, chances >>= 8) {
    const std::uint32_t column = columns % kBlocks;
    const std::uint32_t block = (chances & 0xff) < table.own[column] ? column : table.other[column];
    for (int level = 0; level < 3; ++level) {
      const int bit = 8 * (level + 1) + 7 - draw;  // as a transposition of 8 by 8 bits has them
      upper.from |= (block >> (3 + level) & 1) << bit;
      upper.to |= (block >> level & 1) << bit;
    }
  }
  return upper;
}

// A bijection of the upper bits. Each bit of a product depends on those below; so they are turned
// round between two products, as Graph500's reference code does.
Vertex Kronecker::name_of(std::uint32_t upper) const {
  upper = ((upper & mask_) ^ flip_) * kRename1;
  return (reversed(upper) * kRename2) & (mask_ >> (32 - scale_));
}

void Kronecker::fill_plain(std::uint64_t first, std::span<Edge> out) const {
  for (Edge& edge : out) {
    Upper upper = draws(first, 0);
    if (scale_ > kLevels) {
      const Upper more = draws(first, 1);
      upper.from |= more.from >> kLevels;
      upper.to |= more.to >> kLevels;
    }
    edge = {name_of(upper.from), name_of(upper.to)};
    ++first;
  }
}

#if defined(__x86_64__)
#define ATOLL_WIDE gnu::target("avx512f,avx512bw,avx512dq,avx512vbmi,gfni")
#define ATOLL_WIDE_PART ATOLL_WIDE, gnu::always_inline

// `kVectors` of 8 edges at a time, step by step: one vector's steps wait for each other, and the
// processor does not look far enough ahead to find the next one's.
template <std::size_t kVectors>
struct Kronecker::Wide {
  using Words = __m512i[kVectors];
  static constexpr std::size_t kEdgesOfVector = sizeof(__m512i) / sizeof(Edge);
  static constexpr std::size_t kEdges = kVectors * kEdgesOfVector;

  [[ATOLL_WIDE_PART]] static inline __m512i all(std::uint64_t word) {
    return _mm512_set1_epi64(static_cast<long long>(word));
  }
  [[ATOLL_WIDE_PART]] static inline __m512i all(std::uint32_t word) {
    return _mm512_set1_epi32(static_cast<int>(word));
  }
  template <int kShift>
  [[ATOLL_WIDE_PART]] static inline void fold(Words& words) {
    for (__m512i& word : words) word = _mm512_xor_si512(word, _mm512_srli_epi64(word, kShift));
  }
  [[ATOLL_WIDE_PART]] static inline void multiply(Words& words, std::uint64_t by) {
    for (__m512i& word : words) word = _mm512_mullo_epi64(word, all(by));
  }

  // Kronecker::draws of all words, as Edges.
  [[ATOLL_WIDE_PART]] static inline void draw(const Table& table, Words& words) {
    const __m512i own = _mm512_load_si512(table.own.data());
    const __m512i other = _mm512_load_si512(table.other.data());
    fold<30>(words);
    multiply(words, kMixed1);
    fold<27>(words);
    Words chances;
    for (std::size_t n = 0; n < kVectors; ++n) chances[n] = words[n];
    multiply(words, kMixed2);
    fold<31>(words);
    // Lookups take the lower 6 bits of a byte, the column.
    for (std::size_t n = 0; n < kVectors; ++n) {
      const __m512i bound = _mm512_permutexvar_epi8(words[n], own);
      const __m512i others = _mm512_permutexvar_epi8(words[n], other);
      const __mmask64 below = _mm512_cmplt_epu8_mask(chances[n], bound);
      words[n] = _mm512_mask_mov_epi8(others, below, words[n]);
    }
    // A product of bit matrices transposes: byte n gets one bit of each of the 8 draws, the first
    // one's above. Three such bytes are a vertex's upper bits.
    const __m512i bits = all(std::uint64_t{0x0402010020100800});
    for (__m512i& word : words) word = _mm512_gf2p8affine_epi64_epi8(bits, word, 0);
  }

  [[ATOLL_WIDE_PART]] static inline void rename(const Kronecker& made, Words& words) {
    constexpr int kXorOfAnd = 0x78;  // a ^ (b & c)
    const __m512i mask = all(made.mask_);
    const __m512i flip = all(made.flip_);
    for (__m512i& word : words) word = _mm512_ternarylogic_epi32(flip, word, mask, kXorOfAnd);
    for (__m512i& word : words) word = _mm512_mullo_epi32(word, all(kRename1));
    const __m512i bits_turned = all(std::uint64_t{0x8040201008040201});
    const __m512i bytes_turned =
        _mm512_broadcast_i32x4(_mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203));
    for (__m512i& word : words) word = _mm512_gf2p8affine_epi64_epi8(word, bits_turned, 0);
    for (__m512i& word : words) word = _mm512_shuffle_epi8(word, bytes_turned);
    for (__m512i& word : words) word = _mm512_mullo_epi32(word, all(kRename2));
    const __m512i lower = all(made.mask_ >> (32 - made.scale_));
    for (__m512i& word : words) word = _mm512_and_si512(word, lower);
  }

  // `first` and the number of edges are multiples of `kEdges`, and `out` begins a line.
  template <bool kMoreLevels>
  [[ATOLL_WIDE]] static void stream(const Kronecker& made, std::uint64_t first,
                                    std::span<Edge> out) {
    const __m512i numbers = _mm512_add_epi64(all(first), _mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0));
    __m512i at = _mm512_add_epi64(_mm512_mullo_epi64(numbers, all(kGolden)), all(made.streams_[0]));
    for (std::size_t done = 0; done < out.size(); done += kEdges) {
      const Table& table = made.table_of(first + done);
      Words words;
      for (std::size_t n = 0; n < kVectors; ++n) {
        words[n] = _mm512_add_epi64(at, all(n * kEdgesOfVector * kGolden));
      }
      at = _mm512_add_epi64(at, all(kEdges * kGolden));
      Words more;
      if constexpr (kMoreLevels) {
        const __m512i step = all(made.streams_[1] - made.streams_[0]);
        for (std::size_t n = 0; n < kVectors; ++n) more[n] = _mm512_add_epi64(words[n], step);
        draw(table, more);
      }
      draw(table, words);
      if constexpr (kMoreLevels) {
        for (std::size_t n = 0; n < kVectors; ++n) {
          words[n] = _mm512_or_si512(words[n], _mm512_srli_epi32(more[n], kLevels));
        }
      }
      rename(made, words);
      for (std::size_t n = 0; n < kVectors; ++n) {
        _mm512_stream_si512(reinterpret_cast<__m512i*>(out.data() + done + n * kEdgesOfVector),
                            words[n]);
      }
    }
    _mm_sfence();  // such stores are not ordered before what the caller writes next
  }
};
#endif

void Kronecker::fill(std::uint64_t first, std::span<Edge> out) const {
#if defined(__x86_64__)
  using W = Wide<kAtATime / Wide<1>::kEdges>;
  if (first % W::kEdges == 0 && reinterpret_cast<std::uintptr_t>(out.data()) % 64 == 0 &&
      __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("gfni")) {
    const std::size_t whole = out.size() / W::kEdges * W::kEdges;
    if (scale_ > kLevels) {
      W::stream<true>(*this, first, out.first(whole));
    } else {
      W::stream<false>(*this, first, out.first(whole));
    }
    first += whole;
    out = out.subspan(whole);
  }
#endif
  fill_plain(first, out);
}

}  // namespace atl::kernels
