// The work behind build.hpp and relabel.hpp: from a source of edges to sorted rows.
//
// A source has
//   kWeights, kSorted   constants: whether edges have weights of their own; whether the edges come
//                       by ascending second vertex, so that only the first is left to sort by
//   vertices()
//   edges()             at most how many it gives
//   first_of(i, n)      where the i-th of n shares begins; first_of(n, n) is the end
//   each(first, last, use)   calls use(from, to, place) for each edge between two such numbers
//   weight(place)       of an edge
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

#include "arrays.hpp"
#include "graph/graph.hpp"
#include "team.hpp"
#include "workloads/hash.hpp"

namespace atl::kernels::rows {

inline constexpr int kBucketBits = 12;  // a line of each stays in a core's L2 cache
inline constexpr int kDigitBits = 11;
inline constexpr std::size_t kFewEntries = 256;  // are sorted by comparison
inline constexpr std::size_t kLine = 64;

// One edge in one direction: its first vertex, less the bucket's, above its second.
template <class Key>
struct Entry {
  Key key;
};
struct WeightedEntry {
  std::uint64_t key;
  Weight weight;
};

template <class E>
inline void write_line(E* to, const E* from) {
#if defined(__x86_64__)
  // Past the caches: the line is not read first.
  for (std::size_t part = 0; part < kLine / sizeof(__m128i); ++part) {
    _mm_stream_si128(reinterpret_cast<__m128i*>(to) + part,
                     _mm_load_si128(reinterpret_cast<const __m128i*>(from) + part));
  }
#else
  std::memcpy(to, from, kLine);
#endif
}

// Entries on their way to buckets: a line for each, written when it is full.
template <class E>
class Lines {
 public:
  static constexpr std::size_t kEntries = kLine / sizeof(E);

  Lines(E* out, std::vector<std::uint64_t> at)
      : out_(out), begin_(at), at_(std::move(at)), lines_(new Line[at_.size()]) {}
  ~Lines() {
    for (std::size_t bucket = 0; bucket < at_.size(); ++bucket) {
      const std::uint64_t end = at_[bucket];
      for (std::uint64_t at = std::max(begin_[bucket], end - end % kEntries); at < end; ++at) {
        out_[at] = lines_[bucket].entries[at % kEntries];
      }
    }
#if defined(__x86_64__)
    _mm_sfence();
#endif
  }
  Lines(const Lines&) = delete;
  Lines& operator=(const Lines&) = delete;

  void add(std::size_t bucket, E entry) {
    const std::uint64_t at = at_[bucket]++;
    Line& line = lines_[bucket];
    line.entries[at % kEntries] = entry;
    if (at % kEntries != kEntries - 1) return;
    const std::uint64_t first = at - (kEntries - 1);
    if (first >= begin_[bucket]) return write_line(out_ + first, line.entries);
    std::copy(line.entries + begin_[bucket] % kEntries, line.entries + kEntries,
              out_ + begin_[bucket]);
  }

 private:
  struct alignas(kLine) Line {
    E entries[kEntries];
  };
  E* out_;
  std::vector<std::uint64_t> begin_;
  std::vector<std::uint64_t> at_;
  std::unique_ptr<Line[]> lines_;
};

// Sorts by the bits of the key from `from_bit` on, and stably if there are `kFewEntries` or more:
// least significant digits first, from one half of `room` to the other. Returns where the sorted
// entries are. `room` has twice as many entries as there are.
template <class E>
E* sort_by_key(const E* in, std::size_t count, int from_bit, int bits, E* room) {
  E* out = room;
  E* other = room + count;
  if (count < kFewEntries) {
    std::copy(in, in + count, out);
    std::sort(out, out + count, [](const E& left, const E& right) { return left.key < right.key; });
    return out;
  }
  const int passes = std::max((bits - from_bit + kDigitBits - 1) / kDigitBits, 1);
  const int width = (bits - from_bit + passes - 1) / passes;
  const std::size_t digits = std::size_t{1} << width;
  std::size_t begin[std::size_t{1} << kDigitBits];
  for (int pass = 0; pass < passes; ++pass) {
    const int shift = from_bit + pass * width;
    const auto digit_of = [=](const E& entry) {
      return static_cast<std::size_t>(entry.key >> shift) & (digits - 1);
    };
    std::fill_n(begin, digits, 0);
    for (std::size_t at = 0; at < count; ++at) ++begin[digit_of(in[at])];
    std::size_t sum = 0;
    for (std::size_t digit = 0; digit < digits; ++digit) {
      sum += std::exchange(begin[digit], sum);
    }
    for (std::size_t at = 0; at < count; ++at) out[begin[digit_of(in[at])]++] = in[at];
    in = out;
    std::swap(out, other);
  }
  return other;
}

template <class Source, class E>
class Builder {
 public:
  Builder(Team& team, const Memory& memory, const Source& source)
      : team_(team),
        memory_(memory),
        source_(source),
        to_bits_(std::bit_width(std::max(source.vertices(), Vertex{2}) - 1)),
        shift_(std::max(to_bits_ - kBucketBits, 0)),
        buckets_(source.vertices() == 0 ? 0 : ((source.vertices() - 1) >> shift_) + 1) {}

  Rows rows() {
    partition();
    Rows rows{make_array<std::uint64_t>(memory_, std::size_t{source_.vertices()} + 1),
              make_array<Vertex>(memory_, 0),
              {}};
    sort(rows);
    copy(rows);
    return rows;
  }

 private:
  // Shares of the source: counted, then moved to the buckets.
  void partition() {
    const std::size_t shares = std::clamp<std::size_t>(
        source_.edges() >> 16, 1, static_cast<std::size_t>(team_.workers()) * 4);
    std::vector<std::vector<std::uint64_t>> at(shares);
    team_.loop(shares, 1, [&](std::size_t first, std::size_t last) {
      for (std::size_t share = first; share < last; ++share) {
        at[share].assign(buckets_, 0);
        std::uint64_t* const counts = at[share].data();
        each_of(share, shares, [&](Vertex from, Vertex, std::size_t) { ++counts[from >> shift_]; });
      }
    });
    begin_.assign(buckets_ + 1, 0);
    std::uint64_t sum = 0;
    for (std::size_t bucket = 0; bucket < buckets_; ++bucket) {
      begin_[bucket] = sum;
      for (std::vector<std::uint64_t>& counts : at) sum += std::exchange(counts[bucket], sum);
    }
    begin_[buckets_] = sum;
    entries_.emplace(make_array<E>(memory_, sum));
    team_.loop(shares, 1, [&](std::size_t first, std::size_t last) {
      for (std::size_t share = first; share < last; ++share) {
        Lines<E> lines(entries_->data(), std::move(at[share]));
        each_of(share, shares, [&](Vertex from, Vertex to, std::size_t place) {
          lines.add(from >> shift_, entry(from, to, place));
        });
      }
    });
  }

  template <class Use>
  void each_of(std::size_t share, std::size_t shares, Use&& use) const {
    source_.each(source_.first_of(share, shares), source_.first_of(share + 1, shares), use);
  }

  E entry(Vertex from, Vertex to, [[maybe_unused]] std::size_t place) const {
    using Key = decltype(E::key);
    const Vertex local = from & ((Vertex{1} << shift_) - 1);
    const Key key = static_cast<Key>(std::uint64_t{local} << to_bits_ | to);
    if constexpr (Source::kWeights) {
      return {key, source_.weight(place)};
    } else {
      return {key};
    }
  }

  // Leaves each bucket's rows at its begin: all second vertices, then all weights. The degree of v
  // comes to first[v + 1], the bucket's number of entries to kept_.
  void sort(Rows& rows) {
    kept_.assign(buckets_, 0);
    struct Room {
      std::size_t size = 0;
      std::unique_ptr<E[]> entries;
    };
    std::vector<Room> rooms(static_cast<std::size_t>(team_.workers()));
    team_.loop(buckets_, 1, [&](std::size_t first, std::size_t last) {
      Room& room = rooms[static_cast<std::size_t>(team_.rank())];
      for (std::size_t bucket = first; bucket < last; ++bucket) {
        const std::size_t count = begin_[bucket + 1] - begin_[bucket];
        if (room.size < 2 * count) {
          room.size = 3 * count;
          room.entries.reset(new E[room.size]);
        }
        E* const in = entries_->data() + begin_[bucket];
        const E* const sorted = sort_by_key(in, count, Source::kSorted ? to_bits_ : 0,
                                            shift_ + to_bits_, room.entries.get());
        kept_[bucket] = keep(sorted, count, in, rows.first.data() + 1 + (bucket << shift_));
      }
    });
  }

  // Copies what is not a duplicate. Returns how many that are.
  std::uint64_t keep(const E* sorted, std::size_t count, E* out, std::uint64_t* degrees) const {
    Vertex* const to = reinterpret_cast<Vertex*>(out);
    [[maybe_unused]] Weight* const weights = reinterpret_cast<Weight*>(to + count);
    const std::uint64_t mask = (std::uint64_t{1} << to_bits_) - 1;
    std::size_t kept = 0;
    for (std::size_t at = 0; at < count; ++at) {
      const bool fresh = at == 0 || sorted[at].key != sorted[at - 1].key;
      if constexpr (Source::kWeights) {
        const Weight weight = sorted[at].weight;
        if (fresh) {
          weights[kept] = weight;
        } else {
          weights[kept - 1] = std::min(weights[kept - 1], weight);
        }
      }
      to[kept] = static_cast<Vertex>(sorted[at].key & mask);  // the next one overwrites a duplicate
      kept += fresh ? 1 : 0;
      degrees[std::uint64_t{sorted[at].key} >> to_bits_] += fresh ? 1 : 0;
    }
    return kept;
  }

  void copy(Rows& rows) {
    std::vector<std::uint64_t> base(buckets_);
    std::uint64_t sum = 0;
    for (std::size_t bucket = 0; bucket < buckets_; ++bucket) {
      base[bucket] = std::exchange(sum, sum + kept_[bucket]);
    }
    rows.to = make_array<Vertex>(memory_, sum);
    if (Source::kWeights) rows.weight.emplace(make_array<Weight>(memory_, sum));
    team_.loop(buckets_, 0, [&](std::size_t first, std::size_t last) {
      for (std::size_t bucket = first; bucket < last; ++bucket) {
        const std::uint64_t kept = kept_[bucket];
        const auto* const to = reinterpret_cast<const Vertex*>(entries_->data() + begin_[bucket]);
        std::copy_n(to, kept, rows.to.data() + base[bucket]);
        if constexpr (Source::kWeights) {
          const std::size_t count = begin_[bucket + 1] - begin_[bucket];
          std::copy_n(to + count, kept, rows.weight->data() + base[bucket]);
        }
        const std::size_t begin = bucket << shift_;
        const std::size_t end = std::min<std::size_t>((bucket + 1) << shift_, source_.vertices());
        std::uint64_t at = base[bucket];
        for (std::size_t v = begin; v < end; ++v) {
          at += rows.first[v + 1];
          rows.first[v + 1] = at;
        }
      }
    });
  }

  Team& team_;
  const Memory& memory_;
  const Source& source_;
  const int to_bits_;
  const int shift_;
  const std::size_t buckets_;
  std::vector<std::uint64_t> begin_;  // of each bucket in entries_, and their end
  std::vector<std::uint64_t> kept_;   // of each bucket, without duplicates
  std::optional<Array<E>> entries_;
};

template <class Source>
Rows build(Team& team, const Memory& memory, const Source& source) {
  if constexpr (Source::kWeights) {
    return Builder<Source, WeightedEntry>(team, memory, source).rows();
  } else {
    if (2 * std::bit_width(source.vertices()) - kBucketBits <= 32) {
      return Builder<Source, Entry<std::uint32_t>>(team, memory, source).rows();
    }
    return Builder<Source, Entry<std::uint64_t>>(team, memory, source).rows();
  }
}

}  // namespace atl::kernels::rows
