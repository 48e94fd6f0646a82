#include "dataset.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "hash.hpp"

namespace atl::workloads {
namespace {

constexpr std::string_view kNames[] = {"moving-cluster", "sequential", "runs", "zipf",
                                       "heavy-hitter"};

// Random numbers by position: any part of a stream can be made without the part before it.
class Stream {
 public:
  Stream(std::uint64_t seed, std::uint64_t number)
      : base_(mixed(mixed(seed + kGolden) + number * kGolden)) {}
  [[nodiscard]] std::uint64_t at(std::uint64_t index) const {
    return mixed(base_ + index * kGolden);
  }

 private:
  std::uint64_t base_;
};
constexpr std::uint64_t kValueStream = 0;
constexpr std::uint64_t kKeyStream = 1;  // and those after it, for draws that are repeated

std::int64_t value_from(std::uint64_t random) {
  return static_cast<std::int64_t>(random >> 33);  // below kValues
}

// floor(i * of / n) for i < 2^32 and of <= n < 2^32 by multiplication. The step is rounded up, so
// the product is too large by less than i / 2^64, which is less than the 1 / n that would reach the
// next integer. In halves, as vectors have no product of 128 bits; their sum stays below 2^64.
class Proportion {
 public:
  Proportion(std::uint64_t of, std::uint64_t n) {
    const auto step = ((static_cast<unsigned __int128>(of) << 64) + n - 1) / n;
    upper_ = static_cast<std::uint64_t>(step >> 32);
    lower_ = static_cast<std::uint32_t>(step);
  }
  [[nodiscard]] std::uint64_t at(std::uint64_t i) const {
    return (upper_ * i + ((lower_ * i) >> 32)) >> 32;
  }

 private:
  std::uint64_t upper_;  // of the step, at most 2^64, times 2^-64
  std::uint64_t lower_;  // 32 bits
};

// Rejection-inversion (Hörmann and Derflinger, "Rejection-inversion to generate variates from
// monotone discrete distributions", ACM TOMACS 6(3), 1996), for exponent 1/2: the integral of
// x^-1/2 and its inverse need one square root and one square. On average below 1.1 draws.
class Zipf {
 public:
  explicit Zipf(std::uint64_t keys)
      : keys_(static_cast<double>(keys)),
        low_(integral(1.5) - 1),
        high_(integral(keys_ + 0.5)),
        squeeze_(2 - inverse(integral(2.5) - weight(2))) {}

  struct Draw {
    std::uint64_t key;
    bool sure;  // else another look is needed, which a few draws need
  };
  // From 64 random bits; without a branch.
  [[nodiscard]] Draw draw(std::uint64_t random) const {
    const double x = inverse(area(random));
    const double rank = std::min(std::max(std::floor(x + 0.5), 1.0), keys_);
    return {static_cast<std::uint64_t>(static_cast<std::int64_t>(rank)) - 1, rank - x <= squeeze_};
  }
  // Whether a draw that is not sure counts.
  [[nodiscard]] bool counts(std::uint64_t random, std::uint64_t key) const {
    const double rank = static_cast<double>(key) + 1;
    return area(random) >= integral(rank + 0.5) - weight(rank);
  }

 private:
  [[nodiscard]] double area(std::uint64_t random) const {
    // As a signed number: a conversion that all vectors have.
    const double share = static_cast<double>(static_cast<std::int64_t>(random >> 11)) * 0x1p-53;
    return high_ + share * (low_ - high_);
  }
  static double weight(double x) { return 1 / std::sqrt(x); }
  static double integral(double x) { return 2 * std::sqrt(x) - 2; }
  static double inverse(double area) { return (1 + area / 2) * (1 + area / 2); }

  double keys_;
  double low_;
  double high_;
  double squeeze_;  // so near the rank no second look is needed
};

// The loop that makes records, once for any processor and once for AVX-512, which has products of
// 64 bits: the same records, faster. (GCC's target_clones would need ifuncs, whose
// resolvers crash under TSan.)
template <class Key>
[[gnu::always_inline]] inline void fill_all(const Stream& values, std::uint64_t first,
                                            std::span<Record> out, const Key& key_of) {
  Record* const records = out.data();
  const std::size_t count = out.size();
  for (std::size_t at = 0; at < count; ++at) {
    const std::uint64_t i = first + at;
    records[at].key = static_cast<std::int64_t>(key_of(i));
    records[at].value = value_from(values.at(i));
  }
}

#if defined(__x86_64__)
template <class Key>
[[gnu::target("avx512f,avx512dq,prefer-vector-width=512")]] void fill_wide(const Stream& values,
                                                                           std::uint64_t first,
                                                                           std::span<Record> out,
                                                                           const Key& key_of) {
  fill_all(values, first, out, key_of);
}

// The same past the caches, so that the lines that it writes are not read first. Made in parts,
// which the compiler keeps in registers.
template <class Key>
[[gnu::target("avx512f,avx512dq,prefer-vector-width=512")]] void stream_wide(const Stream& values,
                                                                             std::uint64_t first,
                                                                             std::span<Record> out,
                                                                             const Key& key_of) {
  constexpr std::size_t kLine = 64 / sizeof(Record);
  constexpr std::size_t kPart = 16 * kLine;
  const std::size_t begin = reinterpret_cast<std::uintptr_t>(out.data()) / sizeof(Record);
  std::size_t at = std::min((kLine - begin % kLine) % kLine, out.size());
  fill_all(values, first, out.first(at), key_of);
  for (; out.size() - at >= kPart; at += kPart) {
    alignas(64) Record part[kPart];
    fill_all(values, first + at, std::span(part), key_of);
    for (std::size_t line = 0; line < kPart; line += kLine) {
      _mm512_stream_si512(reinterpret_cast<__m512i*>(&out[at + line]),
                          _mm512_load_si512(part + line));
    }
  }
  fill_all(values, first + at, out.subspan(at), key_of);
  _mm_sfence();  // such stores are not ordered before what the caller writes next
}
#endif

enum class Stores { kCached, kPastCaches };  // kCached: the caller reads what was written

template <Stores kStores = Stores::kPastCaches, class Key>
void fill_with(std::uint64_t seed, std::uint64_t first, std::span<Record> out, const Key& key_of) {
  const Stream values(seed, kValueStream);
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512dq")) {
    if constexpr (kStores == Stores::kCached) {
      return fill_wide(values, first, out, key_of);
    } else {
      return stream_wide(values, first, out, key_of);
    }
  }
#endif
  fill_all(values, first, out, key_of);
}

// The key of record i, from as many draws as it takes.
std::uint64_t settled(const Zipf& zipf, std::uint64_t seed, std::uint64_t i) {
  for (std::uint64_t number = kKeyStream;; ++number) {
    const std::uint64_t random = Stream(seed, number).at(i);
    const Zipf::Draw draw = zipf.draw(random);
    if (draw.sure || zipf.counts(random, draw.key)) return draw.key;
  }
}

void fill_zipf(const DataSpec& spec, std::uint64_t first, std::span<Record> out) {
  const Zipf zipf(spec.groups);
  const Stream draws(spec.seed, kKeyStream);
  constexpr std::uint64_t kUnsure = ~std::uint64_t{0};
  constexpr std::size_t kPart = 512;  // stays in the L1 cache for the second look
  for (; !out.empty(); out = out.subspan(std::min(kPart, out.size()))) {
    const std::span<Record> part = out.first(std::min(kPart, out.size()));
    fill_with<Stores::kCached>(spec.seed, first, part, [=](std::uint64_t i) {
      const Zipf::Draw draw = zipf.draw(draws.at(i));
      return draw.sure ? draw.key : kUnsure;
    });
    std::size_t unsure[kPart];
    std::size_t count = 0;
    for (std::size_t at = 0; at < part.size(); ++at) {
      unsure[count] = at;  // a branch would be mispredicted
      count += part[at].key < 0 ? 1 : 0;
    }
    for (const std::size_t at : std::span(unsure).first(count)) {
      part[at].key = static_cast<std::int64_t>(settled(zipf, spec.seed, first + at));
    }
    first += part.size();
  }
}

// A random order of [0, keys): a Feistel network (Luby and Rackoff, 1988) over the next power of
// four; numbers beyond the keys go round again ("cycle walking", Black and Rogaway, 2002).
class Order {
 public:
  Order(std::uint64_t keys, std::uint64_t seed)
      : keys_(keys), half_bits_((static_cast<int>(std::bit_width(keys - 1)) + 1) / 2) {
    for (std::size_t round = 0; round < rounds_.size(); ++round) {
      rounds_[round] = mixed(seed * kGolden + round + 1);
    }
  }

  [[nodiscard]] std::uint64_t at(std::uint64_t index) const {
    do {
      index = once(index);
    } while (index >= keys_);
    return index;
  }

 private:
  [[nodiscard]] std::uint64_t once(std::uint64_t word) const {
    const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
    std::uint64_t left = word >> half_bits_;
    std::uint64_t right = word & mask;
    for (const std::uint64_t round : rounds_) {
      const std::uint64_t next = left ^ (mixed(right + round) & mask);
      left = right;
      right = next;
    }
    return (left << half_bits_) | right;
  }

  std::uint64_t keys_;
  int half_bits_;
  std::array<std::uint64_t, 4> rounds_{};
};

}  // namespace

std::string_view name_of(Dataset dataset) { return kNames[static_cast<std::size_t>(dataset)]; }

std::optional<Dataset> dataset_named(std::string_view name) {
  const auto* const found = std::find(std::begin(kNames), std::end(kNames), name);
  if (found == std::end(kNames)) return std::nullopt;
  return static_cast<Dataset>(found - std::begin(kNames));
}

std::string_view dataset_names() { return "moving-cluster, sequential, runs, zipf, heavy-hitter"; }

void fill(const DataSpec& spec, std::uint64_t first, std::span<Record> out) {
  const Stream keys(spec.seed, kKeyStream);
  switch (spec.dataset) {
    case Dataset::kMovingCluster: {
      const std::uint64_t window = std::min(kWindow, spec.groups);
      // From 0 to groups - window, both included.
      const Proportion start(spec.groups - window + 1, spec.records);
      return fill_with(spec.seed, first, out,
                       [=](std::uint64_t i) { return start.at(i) + below(keys.at(i), window); });
    }
    case Dataset::kSequential: {
      const Proportion turn(1, spec.groups);
      return fill_with(spec.seed, first, out, [=, groups = spec.groups](std::uint64_t i) {
        return i - groups * turn.at(i);
      });
    }
    case Dataset::kRuns: {
      const Proportion key(spec.groups, spec.records);
      return fill_with(spec.seed, first, out, [=](std::uint64_t i) { return key.at(i); });
    }
    case Dataset::kZipf: return fill_zipf(spec, first, out);
    case Dataset::kHeavyHitter:
      return fill_with(spec.seed, first, out, [=, groups = spec.groups](std::uint64_t i) {
        const std::uint64_t random = keys.at(i);
        const std::uint64_t light = below(random << 1, groups);
        return random >> 63 != 0 ? 0 : light;
      });
  }
}

void fill_keys(std::uint64_t keys, std::uint64_t seed, std::uint64_t first, std::span<Record> out) {
  const Order order(keys, seed);
  // Other values than the larger table's.
  fill_with(~seed, first, out, [&](std::uint64_t i) { return order.at(i); });
}

}  // namespace atl::workloads
