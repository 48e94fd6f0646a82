#include "graph/build.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

#include "workloads/hash.hpp"

namespace atl::kernels {
namespace {

constexpr int kBucketBits = 12;  // a line for each of 2^12 buckets stays in a core's L2 cache
constexpr int kDigitBits = 11;
constexpr std::size_t kLine = 64;

// One edge in one direction: its first vertex, less the bucket's, above its second.
template <class Key>
struct Entry {
  Key key;
};
struct WeightedEntry {
  std::uint64_t key;
  Weight weight;
};

enum class Direction { kOut, kIn, kBoth };

Weight generated_weight(Vertex from, Vertex to, std::uint64_t seed) {
  const auto [low, high] = std::minmax(from, to);
  const std::uint64_t random = workloads::mixed(
      workloads::mixed(seed) + (std::uint64_t{high} << 32 | low) * workloads::kGolden);
  return static_cast<Weight>(1 + workloads::below(random, 255));
}

template <class E>
void write_line(E* to, const E* from) {
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

// Sorts by key: least significant digits first, from one half of `room` to the other. Returns where
// the sorted entries are. `room` has twice as many entries as there are.
template <class E>
E* sort_by_key(const E* in, std::size_t count, int bits, E* room) {
  E* out = room;
  E* other = room + count;
  if (count < 256) {
    std::copy(in, in + count, out);
    std::sort(out, out + count, [](const E& left, const E& right) { return left.key < right.key; });
    return out;
  }
  const int passes = std::max((bits + kDigitBits - 1) / kDigitBits, 1);
  const int width = (bits + passes - 1) / passes;
  const std::size_t digits = std::size_t{1} << width;
  std::uint32_t begin[std::size_t{1} << kDigitBits];
  for (int pass = 0; pass < passes; ++pass) {
    const int shift = pass * width;
    const auto digit_of = [=](const E& entry) {
      return static_cast<std::size_t>(entry.key >> shift) & (digits - 1);
    };
    std::fill_n(begin, digits, 0);
    for (std::size_t at = 0; at < count; ++at) ++begin[digit_of(in[at])];
    std::uint32_t sum = 0;
    for (std::size_t digit = 0; digit < digits; ++digit) {
      sum += std::exchange(begin[digit], sum);
    }
    for (std::size_t at = 0; at < count; ++at) out[begin[digit_of(in[at])]++] = in[at];
    in = out;
    std::swap(out, other);
  }
  return other;
}

template <class E>
class Builder {
 public:
  Builder(Team& team, const Memory& memory, const EdgeList& list, Direction direction,
          const BuildOptions& options)
      : team_(team),
        memory_(memory),
        list_(list),
        direction_(direction),
        options_(options),
        to_bits_(std::bit_width(std::max(list.vertices, Vertex{2}) - 1)),
        shift_(std::max(to_bits_ - kBucketBits, 0)),
        buckets_(list.vertices == 0 ? 0 : ((list.vertices - 1) >> shift_) + 1) {}

  Rows rows() {
    partition();
    Rows rows{make_array<std::uint64_t>(memory_, std::size_t{list_.vertices} + 1),
              make_array<Vertex>(memory_, 0),
              {}};
    sort(rows);
    copy(rows);
    return rows;
  }

 private:
  static constexpr bool kWeighted = std::is_same_v<E, WeightedEntry>;

  template <class F>
  void for_edges(std::size_t first, std::size_t last, F&& use) const {
    for (std::size_t at = first; at < last; ++at) {
      const auto [from, to] = list_.edges[at];
      if (from == to) continue;
      if (direction_ != Direction::kIn) use(from, to, at);
      if (direction_ != Direction::kOut) use(to, from, at);
    }
  }

  void partition() {
    const std::size_t edges = list_.edges.size();
    const std::size_t chunks =
        std::clamp<std::size_t>(edges >> 16, 1, static_cast<std::size_t>(team_.workers()) * 4);
    const auto first_of = [&](std::size_t chunk) {
      return edges / chunks * chunk + std::min(chunk, edges % chunks);
    };
    std::vector<std::vector<std::uint64_t>> at(chunks);
    team_.loop(chunks, 1, [&](std::size_t first, std::size_t last) {
      for (std::size_t chunk = first; chunk < last; ++chunk) {
        at[chunk].assign(buckets_, 0);
        std::uint64_t* const counts = at[chunk].data();
        for_edges(first_of(chunk), first_of(chunk + 1),
                  [&](Vertex from, Vertex, std::size_t) { ++counts[from >> shift_]; });
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
    team_.loop(chunks, 1, [&](std::size_t first, std::size_t last) {
      for (std::size_t chunk = first; chunk < last; ++chunk) {
        Lines<E> lines(entries_->data(), std::move(at[chunk]));
        for_edges(first_of(chunk), first_of(chunk + 1),
                  [&](Vertex from, Vertex to, std::size_t edge) {
                    lines.add(from >> shift_, entry(from, to, edge));
                  });
      }
    });
  }

  E entry(Vertex from, Vertex to, [[maybe_unused]] std::size_t edge) const {
    using Key = decltype(E::key);
    const Vertex local = from & ((Vertex{1} << shift_) - 1);
    const Key key = static_cast<Key>(std::uint64_t{local} << to_bits_ | to);
    if constexpr (kWeighted) {
      return {key, (*list_.weights)[edge]};
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
        const E* const sorted = sort_by_key(in, count, shift_ + to_bits_, room.entries.get());
        kept_[bucket] = keep(sorted, count, in, rows.first.data() + 1 + (bucket << shift_));
      }
    });
  }

  // Copies what is not a duplicate. Returns how many that are.
  std::uint64_t keep(const E* sorted, std::size_t count, E* out, std::uint64_t* degrees) const {
    Vertex* const to = reinterpret_cast<Vertex*>(out);
    Weight* const weights = reinterpret_cast<Weight*>(to + count);
    const std::uint64_t mask = (std::uint64_t{1} << to_bits_) - 1;
    std::size_t kept = 0;
    for (std::size_t at = 0; at < count; ++at) {
      const bool fresh = at == 0 || sorted[at].key != sorted[at - 1].key;
      if constexpr (kWeighted) {
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
      base[bucket] = sum;
      sum += kept_[bucket];
    }
    rows.to = make_array<Vertex>(memory_, sum);
    if (options_.weights) rows.weight.emplace(make_array<Weight>(memory_, sum));
    team_.loop(buckets_, 0, [&](std::size_t first, std::size_t last) {
      for (std::size_t bucket = first; bucket < last; ++bucket) {
        const auto* const to = reinterpret_cast<const Vertex*>(entries_->data() + begin_[bucket]);
        std::memcpy(rows.to.data() + base[bucket], to, kept_[bucket] * sizeof(Vertex));
        const std::size_t begin = bucket << shift_;
        const std::size_t end = std::min<std::size_t>((bucket + 1) << shift_, list_.vertices);
        std::uint64_t at = base[bucket];
        for (std::size_t v = begin; v < end; ++v) {
          at += rows.first[v + 1];
          rows.first[v + 1] = at;
        }
        if (!rows.weight) continue;
        Weight* const weights = rows.weight->data();
        if constexpr (kWeighted) {
          const std::size_t count = begin_[bucket + 1] - begin_[bucket];
          std::memcpy(weights + base[bucket], to + count, kept_[bucket] * sizeof(Weight));
        } else {
          at = base[bucket];
          for (std::size_t v = begin; v < end; ++v) {
            for (; at < rows.first[v + 1]; ++at) {
              weights[at] = generated_weight(static_cast<Vertex>(v), rows.to[at], options_.seed);
            }
          }
        }
      }
    });
  }

  Team& team_;
  const Memory& memory_;
  const EdgeList& list_;
  const Direction direction_;
  const BuildOptions& options_;
  const int to_bits_;
  const int shift_;
  const std::size_t buckets_;
  std::vector<std::uint64_t> begin_;  // of each bucket in entries_, and their end
  std::vector<std::uint64_t> kept_;   // of each bucket, without duplicates
  std::optional<Array<E>> entries_;
};

Rows build_rows(Team& team, const Memory& memory, const EdgeList& list, Direction direction,
                const BuildOptions& options) {
  if (options.weights && list.weights) {
    return Builder<WeightedEntry>(team, memory, list, direction, options).rows();
  }
  const int bits = std::bit_width(list.vertices);
  if (2 * bits - kBucketBits <= 32) {
    return Builder<Entry<std::uint32_t>>(team, memory, list, direction, options).rows();
  }
  return Builder<Entry<std::uint64_t>>(team, memory, list, direction, options).rows();
}

}  // namespace

Graph build_graph(Team& team, const Memory& memory, const EdgeList& list,
                  const BuildOptions& options) {
  const Direction direction = options.directed ? Direction::kOut : Direction::kBoth;
  Graph graph{list.vertices, 0, build_rows(team, memory, list, direction, options), {}};
  graph.edges = options.directed ? graph.out.to.size() : graph.out.to.size() / 2;
  if (options.directed && options.incoming) {
    graph.in.emplace(build_rows(team, memory, list, Direction::kIn, options));
  }
  return graph;
}

}  // namespace atl::kernels
