// The edges of a Kronecker graph, each from its number: three levels of the matrix in one draw.
//
// Three levels choose one of 4^3 = 64 blocks. A draw takes it by Walker's alias method (Walker, "An
// efficient method for generating discrete random variables with general distributions", ACM TOMS
// 3(3), 1977): 6 random bits choose a column, 8 more whether the column's own block counts or the
// other one that shares the column. 8 such draws are 128 random bits, and 24 levels. With AVX-512
// VBMI the table is in two registers, and one instruction looks up 64 draws; with AVX2 eight
// shuffles look up 32.
//
// 8 bits are too few for probabilities as small as 0.05^3. So there are 64 tables, rounded
// differently, for edges in turn: together they are right to 2^-20.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "graph/graph.hpp"

namespace atl::kernels {

class Kronecker {
 public:
  // Scale from 1 to 31.
  Kronecker(int scale, std::uint64_t seed);

  // Edges first to first + out.size() - 1; fast if `out` begins a line and `first` is a multiple of
  // kAtATime. Written past the caches where the processor can.
  void fill(std::uint64_t first, std::span<Edge> out) const;
  static constexpr std::size_t kAtATime = 64;
  // The same without vector instructions, 10 to 100 times slower.
  void fill_plain(std::uint64_t first, std::span<Edge> out) const;

  // The name that a vertex gets whose number is in the upper `scale` bits; no two have the same.
  [[nodiscard]] Vertex name_of(std::uint32_t upper) const;

 private:
  static constexpr std::size_t kBlocks = 64;
  struct alignas(64) Table {
    // A column has its own block for draws below this: three bits of the row above three of the
    // column of the matrix; else the other one.
    std::array<std::uint8_t, kBlocks> own;
    std::array<std::uint8_t, kBlocks> other;
  };
  static constexpr std::size_t kTables = 64;
  static constexpr std::uint64_t kEdgesOfTable = kAtATime;  // in turn
  static constexpr int kLevels = 24;                        // of 8 draws
  template <std::size_t kVectors>
  struct Wide;    // AVX-512
  struct Narrow;  // AVX2

  struct Upper {  // of both vertices' 32 bits the upper 24
    std::uint32_t from;
    std::uint32_t to;
  };
  static Table table(std::size_t number);
  [[nodiscard]] const Table& table_of(std::uint64_t edge) const {
    return tables_[edge / kEdgesOfTable % kTables];
  }
  [[nodiscard]] Upper draws(std::uint64_t edge, std::size_t half) const;

  std::array<Table, kTables> tables_;
  std::array<std::uint64_t, 2> streams_;  // one for each 24 levels
  int scale_;
  std::uint32_t mask_;  // the upper `scale` bits
  std::uint32_t flip_;  // these bits, so that the vertex of the highest degree is any
};

}  // namespace atl::kernels
