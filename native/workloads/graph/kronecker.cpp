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

#define ATOLL_NARROW gnu::target("avx2")
#define ATOLL_NARROW_PART ATOLL_NARROW, gnu::always_inline

// The same for 4 edges at a time, on processors without those instructions: a lookup takes 4
// shuffles, the transposition 3 exchanges, a product of 64 bits two of 32.
struct Kronecker::Narrow {
  static constexpr std::size_t kEdgesOfVector = sizeof(__m256i) / sizeof(Edge);

  [[ATOLL_NARROW_PART]] static inline __m256i all(std::uint64_t word) {
    return _mm256_set1_epi64x(static_cast<long long>(word));
  }
  [[ATOLL_NARROW_PART]] static inline __m256i all(std::uint32_t word) {
    return _mm256_set1_epi32(static_cast<int>(word));
  }
  [[ATOLL_NARROW_PART]] static inline __m256i in_halves(std::uint64_t low, std::uint64_t high) {
    return _mm256_broadcastsi128_si256(
        _mm_set_epi64x(static_cast<long long>(high), static_cast<long long>(low)));
  }
  template <int kShift>
  [[ATOLL_NARROW_PART]] static inline __m256i fold(__m256i words) {
    return _mm256_xor_si256(words, _mm256_srli_epi64(words, kShift));
  }
  [[ATOLL_NARROW_PART]] static inline __m256i multiply(__m256i words, std::uint64_t by) {
    const __m256i crossed = _mm256_mullo_epi32(words, all(by >> 32 | by << 32));
    const __m256i upper = _mm256_add_epi32(_mm256_slli_epi64(crossed, 32),
                                           _mm256_and_si256(crossed, all(~std::uint64_t{0} << 32)));
    return _mm256_add_epi64(_mm256_mul_epu32(words, all(by)), upper);
  }

  // The 64 bytes of a table, and what a lookup of bytes wants to know of them once.
  struct Bytes {
    __m256i quarters[4];
    [[ATOLL_NARROW_PART]] explicit Bytes(const std::array<std::uint8_t, kBlocks>& from) {
      for (std::size_t n = 0; n < 4; ++n) {
        quarters[n] = _mm256_broadcastsi128_si256(
            _mm_load_si128(reinterpret_cast<const __m128i*>(from.data()) + n));
      }
    }
    [[ATOLL_NARROW_PART]] __m256i at(__m256i columns) const {
      const __m256i in_quarter = _mm256_and_si256(columns, _mm256_set1_epi8(0x0f));
      const __m256i odd = _mm256_slli_epi16(columns, 3);  // bit 4 of each byte is its highest
      const __m256i late = _mm256_slli_epi16(columns, 2);
      __m256i found[4];
      for (int n = 0; n < 4; ++n) found[n] = _mm256_shuffle_epi8(quarters[n], in_quarter);
      return _mm256_blendv_epi8(_mm256_blendv_epi8(found[0], found[1], odd),
                                _mm256_blendv_epi8(found[2], found[3], odd), late);
    }
  };

  // Exchanges in each word the bits of `mask` with those `kShift` above.
  template <int kShift>
  [[ATOLL_NARROW_PART]] static inline __m256i exchange(__m256i words, std::uint64_t mask) {
    const __m256i differ = _mm256_and_si256(fold<kShift>(words), all(mask));
    return _mm256_xor_si256(words, _mm256_xor_si256(differ, _mm256_slli_epi64(differ, kShift)));
  }

  // Kronecker::draws of all words, as Edges.
  [[ATOLL_NARROW_PART]] static inline __m256i draw(const Bytes& own, const Bytes& other,
                                                   __m256i words) {
    const __m256i chances = fold<27>(multiply(fold<30>(words), kMixed1));
    const __m256i columns = fold<31>(multiply(chances, kMixed2));
    const __m256i bound = own.at(columns);
    const __m256i not_below = _mm256_cmpeq_epi8(_mm256_max_epu8(chances, bound), chances);
    __m256i blocks = _mm256_blendv_epi8(columns, other.at(columns), not_below);
    // Bytes turned round, transposed, and three of them to each vertex, above an empty one.
    blocks = _mm256_shuffle_epi8(blocks, in_halves(0x0001020304050607, 0x08090a0b0c0d0e0f));
    blocks = exchange<7>(blocks, 0x00aa00aa00aa00aa);
    blocks = exchange<14>(blocks, 0x0000cccc0000cccc);
    blocks = exchange<28>(blocks, 0x00000000f0f0f0f0);
    return _mm256_shuffle_epi8(blocks, in_halves(0x0201008005040380, 0x0a0908800d0c0b80));
  }

  [[ATOLL_NARROW_PART]] static inline __m256i reversed(__m256i words) {
    const __m256i nibble = _mm256_set1_epi8(0x0f);
    const __m256i turned = in_halves(0x0e060a020c040800, 0x0f070b030d050901);
    const __m256i low = _mm256_shuffle_epi8(turned, _mm256_and_si256(words, nibble));
    const __m256i high =
        _mm256_shuffle_epi8(turned, _mm256_and_si256(_mm256_srli_epi16(words, 4), nibble));
    return _mm256_shuffle_epi8(_mm256_or_si256(_mm256_slli_epi16(low, 4), high),
                               in_halves(0x0405060700010203, 0x0c0d0e0f08090a0b));
  }

  [[ATOLL_NARROW_PART]] static inline __m256i rename(const Kronecker& made, __m256i words) {
    words = _mm256_xor_si256(_mm256_and_si256(words, all(made.mask_)), all(made.flip_));
    words = _mm256_mullo_epi32(words, all(kRename1));
    words = _mm256_mullo_epi32(reversed(words), all(kRename2));
    return _mm256_and_si256(words, all(made.mask_ >> (32 - made.scale_)));
  }

  // `first` and the number of edges are multiples of `kEdgesOfTable`, and `out` begins a line.
  template <bool kMoreLevels>
  [[ATOLL_NARROW]] static void stream(const Kronecker& made, std::uint64_t first,
                                      std::span<Edge> out) {
    const auto start = made.streams_[0] + first * kGolden;
    __m256i at =
        _mm256_add_epi64(all(start), _mm256_setr_epi64x(0, static_cast<long long>(kGolden),
                                                        static_cast<long long>(2 * kGolden),
                                                        static_cast<long long>(3 * kGolden)));
    const __m256i step = all(made.streams_[1] - made.streams_[0]);
    for (std::size_t done = 0; done < out.size(); done += kEdgesOfTable) {
      const Table& table = made.table_of(first + done);
      const Bytes own(table.own);
      const Bytes other(table.other);
      for (std::size_t n = 0; n < kEdgesOfTable; n += kEdgesOfVector) {
        __m256i words = draw(own, other, at);
        if constexpr (kMoreLevels) {
          const __m256i more = draw(own, other, _mm256_add_epi64(at, step));
          words = _mm256_or_si256(words, _mm256_srli_epi32(more, kLevels));
        }
        at = _mm256_add_epi64(at, all(kEdgesOfVector * kGolden));
        _mm256_stream_si256(reinterpret_cast<__m256i*>(out.data() + done + n), rename(made, words));
      }
    }
    _mm_sfence();  // as above
  }
};
#endif

void Kronecker::fill(std::uint64_t first, std::span<Edge> out) const {
#if defined(__x86_64__)
  if (first % kAtATime == 0 && reinterpret_cast<std::uintptr_t>(out.data()) % 64 == 0) {
    const std::span<Edge> whole = out.first(out.size() / kAtATime * kAtATime);
    const bool more = scale_ > kLevels;
    using W = Wide<kAtATime / Wide<1>::kEdges>;
    std::size_t done = whole.size();
    if (__builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("gfni")) {
      (more ? W::stream<true> : W::stream<false>)(*this, first, whole);
    } else if (__builtin_cpu_supports("avx2")) {
      (more ? Narrow::stream<true> : Narrow::stream<false>)(*this, first, whole);
    } else {
      done = 0;
    }
    first += done;
    out = out.subspan(done);
  }
#endif
  fill_plain(first, out);
}

}  // namespace atl::kernels
