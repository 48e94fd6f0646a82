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
//   weights()           of all edges, in any order
#pragma once

#include <algorithm>
#include <atomic>
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
inline constexpr std::size_t kRoomPart = 8;  // all workers have room for an eighth of the entries

// One edge in one direction: its first vertex, less the bucket's, above its second, above its
// weight if the key has room.
template <class Key>
struct Entry {
  Key key;
};
struct WeightedEntry {
  std::uint64_t key;
  Weight weight;
};

// The bits of a key: the first vertex without the bucket's bits, and the second.
inline int key_bits(int vertex_bits) {
  return vertex_bits + std::max(vertex_bits - kBucketBits, 0);
}
inline int bits_of(std::uint64_t vertices) {
  return static_cast<int>(std::bit_width(std::max<std::uint64_t>(vertices, 2) - 1));
}

// Entries that a worker sorts by digits, which needs as much room again. Larger ranges, such as
// that of a star's hub, are sorted in place.
inline std::size_t most_room(std::size_t entries, int workers) {
  return std::clamp<std::size_t>(entries / kRoomPart / static_cast<std::size_t>(workers),
                                 std::size_t{1} << 16, ~std::uint32_t{0});
}

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

// Sorts by the bits of the key from `from_bit` to before `bits`, or by all: least significant
// digits first, to `room` and back. Returns which of both has the result. The order of entries with
// equal bits is kept unless there are few. `room` is null or has `count` entries.
template <class E>
E* sort_by_key(E* in, std::size_t count, int from_bit, int bits, E* room) {
  if (count < kFewEntries || room == nullptr) {
    std::sort(in, in + count, [](const E& left, const E& right) { return left.key < right.key; });
    return in;
  }
  const int passes = std::max((bits - from_bit + kDigitBits - 1) / kDigitBits, 1);
  const int width = (bits - from_bit + passes - 1) / passes;
  const std::size_t digits = std::size_t{1} << width;
  std::uint32_t begin[std::size_t{1} << kDigitBits];
  for (int pass = 0; pass < passes; ++pass) {
    const int shift = from_bit + pass * width;
    const auto digit_of = [=](const E& entry) {
      return static_cast<std::size_t>(entry.key >> shift) & (digits - 1);
    };
    std::fill_n(begin, digits, 0);
    for (std::size_t at = 0; at < count; ++at) ++begin[digit_of(in[at])];
    std::uint32_t sum = 0;
    for (std::size_t digit = 0; digit < digits; ++digit) {
      sum += std::exchange(begin[digit], sum);
    }
    for (std::size_t at = 0; at < count; ++at) room[begin[digit_of(in[at])]++] = in[at];
    std::swap(in, room);
  }
  return in;
}

template <class Source, class E>
class Builder {
 public:
  Builder(Team& team, const Memory& memory, const Source& source, int weight_bits)
      : team_(team),
        memory_(memory),
        source_(source),
        weight_bits_(weight_bits),
        to_bits_(bits_of(source.vertices())),
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
    const std::uint64_t key = std::uint64_t{local} << to_bits_ | to;
    if constexpr (std::is_same_v<E, WeightedEntry>) {
      return {key, source_.weight(place)};
    } else if constexpr (Source::kWeights) {
      return {key << weight_bits_ | static_cast<std::uint64_t>(source_.weight(place))};
    } else {
      return {static_cast<Key>(key)};
    }
  }
  [[nodiscard]] Weight weight_of(const E& entry) const {
    if constexpr (std::is_same_v<E, WeightedEntry>) {
      return entry.weight;
    } else {
      return static_cast<Weight>(entry.key & ((std::uint64_t{1} << weight_bits_) - 1));
    }
  }
  void lower_weight(E& entry, const E& other) const {
    if constexpr (std::is_same_v<E, WeightedEntry>) {
      entry.weight = std::min(entry.weight, other.weight);
    } else {
      entry.key = std::min(entry.key, other.key);  // the vertices are the same
    }
  }

  // Leaves each bucket's entries sorted at its begin, without duplicates, their number in kept_,
  // and the degree of v in first[v + 1].
  void sort(Rows& rows) {
    kept_.assign(buckets_, 0);
    struct Room {
      std::size_t size = 0;
      std::unique_ptr<E[]> entries;
    };
    std::vector<Room> rooms(static_cast<std::size_t>(team_.workers()));
    const std::size_t most = most_room(entries_->size(), team_.workers());
    team_.loop(buckets_, 1, [&](std::size_t first, std::size_t last) {
      Room& room = rooms[static_cast<std::size_t>(team_.rank())];
      for (std::size_t bucket = first; bucket < last; ++bucket) {
        const std::size_t count = begin_[bucket + 1] - begin_[bucket];
        if (room.size < count && count <= most) {
          room.size = std::min(count + count / 2, most);
          room.entries.reset();  // before there is another
          room.entries.reset(new E[room.size]);
        }
        E* const in = entries_->data() + begin_[bucket];
        const E* const sorted = sort_by_key(
            in, count, weight_bits_ + (Source::kSorted ? to_bits_ : 0),
            weight_bits_ + to_bits_ + shift_, count <= most ? room.entries.get() : nullptr);
        kept_[bucket] = keep(sorted, count, in, rows.first.data() + 1 + (bucket << shift_));
      }
    });
  }

  // Copies what is not a duplicate, perhaps to where it is. Returns how many that are.
  std::uint64_t keep(const E* sorted, std::size_t count, E* out, std::uint64_t* degrees) const {
    std::size_t kept = 0;
    for (std::size_t at = 0; at < count; ++at) {
      const E entry = sorted[at];
      const std::uint64_t key = std::uint64_t{entry.key} >> weight_bits_;
      if (kept != 0 && std::uint64_t{out[kept - 1].key} >> weight_bits_ == key) {
        if constexpr (Source::kWeights) lower_weight(out[kept - 1], entry);
        continue;
      }
      out[kept++] = entry;
      ++degrees[key >> to_bits_];
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
    const std::uint64_t mask = (std::uint64_t{1} << to_bits_) - 1;
    team_.loop(buckets_, 0, [&](std::size_t first, std::size_t last) {
      for (std::size_t bucket = first; bucket < last; ++bucket) {
        const std::uint64_t kept = kept_[bucket];
        const E* const in = entries_->data() + begin_[bucket];
        Vertex* const to = rows.to.data() + base[bucket];
        for (std::size_t at = 0; at < kept; ++at) {
          to[at] = static_cast<Vertex>(in[at].key >> weight_bits_ & mask);
        }
        if constexpr (Source::kWeights) {
          Weight* const weight = rows.weight->data() + base[bucket];
          for (std::size_t at = 0; at < kept; ++at) weight[at] = weight_of(in[at]);
        }
        const std::size_t begin = bucket << shift_;
        const std::size_t end = std::min<std::size_t>((bucket + 1) << shift_, source_.vertices());
        std::uint64_t sum_before = base[bucket];
        for (std::size_t v = begin; v < end; ++v) {
          sum_before += rows.first[v + 1];
          rows.first[v + 1] = sum_before;
        }
      }
    });
  }

  Team& team_;
  const Memory& memory_;
  const Source& source_;
  const int weight_bits_;  // of the key
  const int to_bits_;
  const int shift_;
  const std::size_t buckets_;
  std::vector<std::uint64_t> begin_;  // of each bucket in entries_, and their end
  std::vector<std::uint64_t> kept_;   // of each bucket, without duplicates
  std::optional<Array<E>> entries_;
};

inline Weight greatest(Team& team, const Array<Weight>& weights) {
  std::atomic<Weight> most{0};
  team.loop(weights.size(), 0, [&](std::size_t first, std::size_t last) {
    const Weight found = *std::max_element(weights.data() + first, weights.data() + last);
    Weight before = most.load(std::memory_order_relaxed);  // read after the loop, which orders it
    while (before < found &&
           !most.compare_exchange_weak(before, found, std::memory_order_relaxed)) {
    }
  });
  return most.load(std::memory_order_relaxed);
}

template <class Source>
Rows build(Team& team, const Memory& memory, const Source& source) {
  const int bits = key_bits(bits_of(source.vertices()));
  if constexpr (Source::kWeights) {
    const int weight_bits =
        std::bit_width(static_cast<std::uint32_t>(greatest(team, source.weights())));
    if (bits + weight_bits > 64) {
      return Builder<Source, WeightedEntry>(team, memory, source, 0).rows();
    }
    return Builder<Source, Entry<std::uint64_t>>(team, memory, source, weight_bits).rows();
  } else {
    if (bits <= 32) return Builder<Source, Entry<std::uint32_t>>(team, memory, source, 0).rows();
    return Builder<Source, Entry<std::uint64_t>>(team, memory, source, 0).rows();
  }
}

}  // namespace atl::kernels::rows
