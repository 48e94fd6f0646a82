// Rows in fewer bytes: of each vertex the differences between its sorted neighbours, most of which
// are small, in one to four bytes each; for every four a byte says how long they are (group varint;
// Dean, "Challenges in Building Large-Scale Information Retrieval Systems", WSDM 2009). These bytes
// come first in a row, so that a reader knows the next before it is through with this one (Lemire,
// Kurz and Rupp, "Stream VByte", Information Processing Letters 130, 2018). For graphs that are
// larger than the caches, or than memory.
//
// The first difference is from the row's own vertex, by which graphs whose neighbours have near
// numbers gain; its sign is its last bit. A reader loads whole words, so it reads up to kSlack
// bytes beyond a row, and the bytes of all rows are that much longer.
//
// What is read here was written here, it never comes from a file, so nothing is checked.
//
// Cost: of a Kronecker graph 1.6 to 2.4 bytes an entry instead of 4, and 12 instead of 8 a vertex;
// to read, a load, three shuffles and three additions for four entries (SSSE3), on other CPUs a
// load, a mask and an addition for each.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>

#include "arrays.hpp"
#include "graph/graph.hpp"
#include "team.hpp"

namespace atl::kernels {

namespace groups {

inline constexpr std::size_t kSize = 4;
inline constexpr std::size_t kSlack = 1 + kSize * sizeof(Vertex);
inline std::uint64_t count(std::uint64_t degree) { return (degree + kSize - 1) / kSize; }

// The first difference, from `v`, with its sign as its last bit; and back.
inline Vertex signed_from(Vertex v, Vertex first) {
  const Vertex apart = first - v;
  return apart << 1 ^ (0 - (apart >> 31));
}
inline Vertex first_of(Vertex v, Vertex difference) {
  return v + (difference >> 1 ^ (0 - (difference & 1)));
}

// A group's values, one after the other.
class Reader {
 public:
  Reader(std::uint8_t lengths, const std::uint8_t* at) : at_(at), lengths_(lengths) {}
  Vertex next() {
    const unsigned more = lengths_ & 3;  // bytes, after the first
    std::uint32_t value;
    std::memcpy(&value, at_, sizeof value);
    if constexpr (std::endian::native == std::endian::big) value = __builtin_bswap32(value);
    at_ += more + 1;
    lengths_ >>= 2;
    return value & (~std::uint32_t{0} >> (24 - 8 * more));
  }
  [[nodiscard]] const std::uint8_t* end() const { return at_; }

 private:
  const std::uint8_t* at_;
  unsigned lengths_;
};

// Adds up the differences of `groups` groups behind `last`, to `out`. Returns where they end.
using Sum = const std::uint8_t* (*)(const std::uint8_t* lengths, std::size_t groups,
                                    const std::uint8_t* at, Vertex last, Vertex* out);
const std::uint8_t* sum_plain(const std::uint8_t* lengths, std::size_t groups,
                              const std::uint8_t* at, Vertex last, Vertex* out);
extern const Sum sum_best;  // for this CPU

// As Rows::until, of the row at `lengths`.
template <class Use>
bool until(const std::uint8_t* lengths, Vertex v, std::uint64_t degree, Use&& use,
           Sum sum = sum_best) {
  constexpr std::size_t kMost = 64;
  if (degree == 0) return false;
  // Many rows are short, and of many only the first neighbours are wanted.
  const std::uint8_t* at = lengths + count(degree);
  Reader reader(*lengths++, at);
  Vertex piece[kMost];
  piece[0] = first_of(v, reader.next());
  for (std::size_t place = 1; place < kSize; ++place)
    piece[place] = piece[place - 1] + reader.next();
  at = reader.end();
  std::size_t size = kSize;
  for (;;) {
    if (use(std::span<const Vertex>(piece, std::min<std::uint64_t>(size, degree)))) return true;
    if (degree <= size) return false;
    const Vertex last = piece[size - 1];
    degree -= size;
    size = std::min(kMost, 4 * size);
    const std::size_t groups = count(std::min<std::uint64_t>(size, degree));
    at = sum(lengths, groups, at, last, piece);
    lengths += groups;
  }
}

}  // namespace groups

class CompressedRows {
 public:
  Array<std::uint64_t> first;  // vertices + 1; first[v] is where v's begin in the bytes

  // Without weights. Throws RuntimeFault if there is no memory, and WrongAnswer if the rows read
  // otherwise than they were.
  CompressedRows(Team& team, const Memory& memory, const Rows& rows);

  [[nodiscard]] std::uint64_t entries() const { return entries_; }
  [[nodiscard]] std::uint64_t degree(Vertex v) const { return degrees_[v]; }
  [[nodiscard]] std::uint64_t bytes() const {
    return first.size() * sizeof(std::uint64_t) + degrees_.size() * sizeof(Vertex) + bytes_.size();
  }
  // As they lie in memory, with what may be read beyond.
  [[nodiscard]] std::span<const std::uint8_t> data() const {
    return {bytes_.data(), bytes_.size()};
  }
  [[nodiscard]] std::pair<Vertex, Vertex> front(Vertex v) const {
    const std::uint8_t* const row = bytes_.data() + first[v];
    groups::Reader reader(*row, row + groups::count(degree(v)));
    const Vertex one = groups::first_of(v, reader.next());
    const Vertex two = one + reader.next();
    return {degree(v) > 0 ? one : v, degree(v) > 1 ? two : v};
  }
  template <class Use>
  bool until(Vertex v, Use&& use) const {
    return groups::until(bytes_.data() + first[v], v, degrees_[v], use);
  }
  void fetch_begin(Vertex v) const {
    __builtin_prefetch(&first[v]);
    __builtin_prefetch(&degrees_[v]);
  }
  void fetch(Vertex v) const { __builtin_prefetch(bytes_.data() + first[v]); }

 private:
  std::uint64_t entries_;
  Array<Vertex> degrees_;
  Array<std::uint8_t> bytes_;
};
using CompressedGraph = GraphOf<CompressedRows>;

// The plain rows of each direction are freed when it is compressed.
[[nodiscard]] CompressedGraph compressed(Team& team, const Memory& memory, Graph graph);

// At most what the rows of a graph of this size take.
[[nodiscard]] std::uint64_t compressed_bytes(std::uint64_t vertices, std::uint64_t entries);

}  // namespace atl::kernels
