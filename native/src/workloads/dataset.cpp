#include "dataset.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

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

// floor(i * of / n) for all i < n by one multiplication. The step is rounded up, so the product is
// too large by less than n / 2^64, which is less than the 1 / n that would reach the next integer,
// as n < 2^32.
class Proportion {
 public:
  Proportion(std::uint64_t of, std::uint64_t n)
      : step_(((static_cast<unsigned __int128>(of) << 64) + n - 1) / n) {}
  [[nodiscard]] std::uint64_t at(std::uint64_t i) const {
    return static_cast<std::uint64_t>((step_ * i) >> 64);
  }

 private:
  unsigned __int128 step_;  // at most 2^64, times 2^-64
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

  // `uniform()` gives 64 random bits.
  template <class Uniform>
  std::uint64_t draw(Uniform&& uniform) const {
    for (;;) {
      const double share = static_cast<double>(uniform() >> 11) * 0x1p-53;
      const double area = high_ + share * (low_ - high_);
      const double x = inverse(area);
      const double rank = std::clamp(std::floor(x + 0.5), 1.0, keys_);
      if (rank - x <= squeeze_ || area >= integral(rank + 0.5) - weight(rank)) {
        return static_cast<std::uint64_t>(rank) - 1;
      }
    }
  }

 private:
  static double weight(double x) { return 1 / std::sqrt(x); }
  static double integral(double x) { return 2 * std::sqrt(x) - 2; }
  static double inverse(double area) { return (1 + area / 2) * (1 + area / 2); }

  double keys_;
  double low_;
  double high_;
  double squeeze_;  // so near the rank no second look is needed
};

template <class Key>
void fill_with(std::uint64_t seed, std::uint64_t first, std::span<Record> out, Key&& key_of) {
  const Stream values(seed, kValueStream);
  for (std::size_t at = 0; at < out.size(); ++at) {
    const std::uint64_t i = first + at;
    out[at] = {static_cast<std::int64_t>(key_of(i)), value_from(values.at(i))};
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
  const auto with = [&](auto&& key_of) { fill_with(spec.seed, first, out, key_of); };
  switch (spec.dataset) {
    case Dataset::kMovingCluster: {
      const std::uint64_t window = std::min(kWindow, spec.groups);
      // From 0 to groups - window, both included.
      const Proportion start(spec.groups - window + 1, spec.records);
      return with([&](std::uint64_t i) { return start.at(i) + below(keys.at(i), window); });
    }
    case Dataset::kSequential: {
      const auto groups = static_cast<std::uint32_t>(spec.groups);  // a quicker division
      return with([&](std::uint64_t i) { return static_cast<std::uint32_t>(i) % groups; });
    }
    case Dataset::kRuns: {
      const Proportion key(spec.groups, spec.records);
      return with([&](std::uint64_t i) { return key.at(i); });
    }
    case Dataset::kZipf: {
      const Zipf zipf(spec.groups);
      return with([&](std::uint64_t i) {
        std::uint64_t number = kKeyStream;
        return zipf.draw([&] {
          const std::uint64_t now = number++;
          return now == kKeyStream ? keys.at(i) : Stream(spec.seed, now).at(i);
        });
      });
    }
    case Dataset::kHeavyHitter:
      return with([&](std::uint64_t i) -> std::uint64_t {
        const std::uint64_t random = keys.at(i);
        return random >> 63 != 0 ? 0 : below(random << 1, spec.groups);
      });
  }
}

void fill_keys(std::uint64_t keys, std::uint64_t seed, std::uint64_t first, std::span<Record> out) {
  const Order order(keys, seed);
  // Other values than the larger table's.
  fill_with(~seed, first, out, [&](std::uint64_t i) { return order.at(i); });
}

}  // namespace atl::workloads
