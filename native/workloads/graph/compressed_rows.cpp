#include "graph/compressed_rows.hpp"

#include <array>
#include <atomic>
#include <string>

#include "graph/loops.hpp"
#include "workload.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace atl::kernels {
namespace groups {

const std::uint8_t* sum_plain(const std::uint8_t* lengths, std::size_t groups,
                              const std::uint8_t* at, Vertex last, Vertex* out) {
  for (std::size_t group = 0; group < groups; ++group) {
    Reader reader(lengths[group], at);
    for (std::size_t place = 0; place < kSize; ++place) *out++ = last += reader.next();
    at = reader.end();
  }
  return at;
}

#if defined(__x86_64__)
namespace {

// By a group's lengths: where the bytes of its values are, and how many these are.
struct Shuffles {
  alignas(16) std::uint8_t of[256][16];
  std::uint8_t length[256];
};
constexpr Shuffles kShuffles = [] {
  Shuffles made{};
  for (std::size_t lengths = 0; lengths < 256; ++lengths) {
    std::uint8_t from = 0;
    for (std::size_t place = 0; place < kSize; ++place) {
      const std::size_t length = (lengths >> 2 * place & 3) + 1;
      for (std::size_t byte = 0; byte < sizeof(Vertex); ++byte) {
        constexpr std::uint8_t kZero = 0x80;
        made.of[lengths][sizeof(Vertex) * place + byte] = byte < length ? from++ : kZero;
      }
    }
    made.length[lengths] = from;
  }
  return made;
}();

__attribute__((target("ssse3"))) const std::uint8_t* sum_ssse3(const std::uint8_t* lengths,
                                                               std::size_t groups,
                                                               const std::uint8_t* at, Vertex last,
                                                               Vertex* out) {
  __m128i before = _mm_set1_epi32(static_cast<int>(last));
  for (std::size_t group = 0; group < groups; ++group) {
    const auto* const shuffle = reinterpret_cast<const __m128i*>(kShuffles.of[lengths[group]]);
    __m128i sums = _mm_shuffle_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at)),
                                    _mm_load_si128(shuffle));
    sums = _mm_add_epi32(sums, _mm_slli_si128(sums, 4));
    sums = _mm_add_epi32(sums, _mm_slli_si128(sums, 8));
    sums = _mm_add_epi32(sums, before);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + kSize * group), sums);
    before = _mm_shuffle_epi32(sums, 0xff);
    at += kShuffles.length[lengths[group]];
  }
  return at;
}

}  // namespace

const Sum sum_best = __builtin_cpu_supports("ssse3") ? sum_ssse3 : sum_plain;
#else
const Sum sum_best = sum_plain;
#endif

}  // namespace groups

namespace {

unsigned length_of(Vertex difference) {
  return 1 + (difference > 0xff ? 1 : 0) + (difference > 0xffff ? 1 : 0) +
         (difference > 0xffffff ? 1 : 0);
}

Vertex difference(Vertex v, std::span<const Vertex> row, std::size_t at) {
  return at == 0 ? groups::signed_from(v, row[0]) : row[at] - row[at - 1];
}

std::uint64_t bytes_of(Vertex v, std::span<const Vertex> row) {
  std::uint64_t bytes = groups::count(row.size());
  for (std::size_t at = 0; at < row.size(); ++at) bytes += length_of(difference(v, row, at));
  return bytes;
}

// To memory that is zero.
void write_row(Vertex v, std::span<const Vertex> row, std::uint8_t* lengths) {
  std::uint8_t* out = lengths + groups::count(row.size());
  for (std::size_t at = 0; at < row.size(); ++at) {
    const Vertex value = difference(v, row, at);
    const unsigned length = length_of(value);
    lengths[at / groups::kSize] |=
        static_cast<std::uint8_t>((length - 1) << 2 * (at % groups::kSize));
    for (unsigned byte = 0; byte < length; ++byte) {
      *out++ = static_cast<std::uint8_t>(value >> 8 * byte);
    }
  }
}

bool same(const CompressedRows& rows, Vertex v, std::span<const Vertex> right) {
  std::size_t at = 0;
  rows.until(v, [&](std::span<const Vertex> piece) {
    if (!std::ranges::equal(piece, right.subspan(at, piece.size()))) return true;
    at += piece.size();
    return false;
  });
  return at == right.size();
}

}  // namespace

CompressedRows::CompressedRows(Team& team, const Memory& memory, const Rows& rows)
    : first(make_array<std::uint64_t>(memory, rows.first.size())),
      entries_(rows.entries()),
      degrees_(make_array<Vertex>(memory, rows.first.size() - 1)),
      bytes_(make_array<std::uint8_t>(memory, 0)) {
  const auto each = [&](auto&& use) {
    loop_by_edges(team, rows, [&](Vertex v, Vertex last) {
      for (; v < last; ++v) use(v, rows.of(v));
    });
  };
  each([&](Vertex v, std::span<const Vertex> row) {
    degrees_[v] = static_cast<Vertex>(row.size());
    first[v + 1] = bytes_of(v, row);
  });
  for (std::size_t v = 0; v < degrees_.size(); ++v) first[v + 1] += first[v];
  bytes_ = make_array<std::uint8_t>(memory, first[degrees_.size()] + groups::kSlack);
  each([&](Vertex v, std::span<const Vertex> row) { write_row(v, row, &bytes_[first[v]]); });
  std::atomic<Vertex> wrong{kNone};
  each([&](Vertex v, std::span<const Vertex> row) {
    if (!same(*this, v, row)) wrong.store(v, std::memory_order_relaxed);
  });
  const Vertex v = wrong.load(std::memory_order_relaxed);  // after the loop, which orders it
  if (v != kNone)
    throw WrongAnswer("the compressed row of vertex " + std::to_string(v) + " is not what it was");
}

CompressedGraph compressed(Team& team, const Memory& memory, Graph graph) {
  const auto of = [&](Rows plain) { return CompressedRows(team, memory, plain); };
  CompressedGraph made{graph.vertices, graph.edges, of(std::move(graph.out)), {}};
  if (graph.in) made.in.emplace(of(*std::move(graph.in)));
  return made;
}

std::uint64_t compressed_bytes(std::uint64_t vertices, std::uint64_t entries) {
  // A vertex has its begin, its degree, a byte of lengths that not all of four use, and a first
  // difference that is one bit longer than others.
  const std::uint64_t length =
      length_of(static_cast<Vertex>(std::min<std::uint64_t>(vertices, kNone)));
  return vertices * (sizeof(std::uint64_t) + sizeof(Vertex) + 2) + entries * length +
         entries / groups::kSize + sizeof(std::uint64_t) + groups::kSlack;
}

}  // namespace atl::kernels
