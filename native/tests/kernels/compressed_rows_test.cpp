// Compressed rows against the rows that they were made of, in memory that ends where they may read.
#include "graph/compressed_rows.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <vector>

#include "graph/make.hpp"
#include "kernels/graphs.hpp"

namespace atl::kernels {
namespace {

using Lists = std::vector<std::vector<Vertex>>;

Rows rows_of(const Memory& memory, const Lists& lists) {
  Rows rows{make_array<std::uint64_t>(memory, lists.size() + 1), make_array<Vertex>(memory, 0), {}};
  for (std::size_t v = 0; v < lists.size(); ++v)
    rows.first[v + 1] = rows.first[v] + lists[v].size();
  rows.to = make_array<Vertex>(memory, rows.first[lists.size()]);
  for (std::size_t v = 0; v < lists.size(); ++v) {
    std::copy(lists[v].begin(), lists[v].end(), rows.to.data() + rows.first[v]);
  }
  return rows;
}

// Sorted, each once, from all numbers that a vertex may have, with gaps up to `widest`.
std::vector<Vertex> random_row(std::mt19937& random, std::size_t size, std::uint64_t widest) {
  std::vector<Vertex> row;
  std::uint64_t at = random();
  while (row.size() < size) {
    row.push_back(static_cast<Vertex>(at % kNone));
    at += 1 + random() % widest;
  }
  std::sort(row.begin(), row.end());
  row.erase(std::unique(row.begin(), row.end()), row.end());
  return row;
}

void expect_same(const Memory& memory, Team& team, const Lists& lists) {
  const CompressedRows rows(team, memory, rows_of(memory, lists));
  // On the heap, which ASan watches to the byte.
  const std::vector<std::uint8_t> bytes(rows.data().begin(), rows.data().end());
  std::uint64_t entries = 0;
  for (std::size_t at = 0; at < lists.size(); ++at) {
    const auto v = static_cast<Vertex>(at);
    const std::vector<Vertex>& row = lists[at];
    entries += row.size();
    ASSERT_EQ(rows.degree(v), row.size());
    for (const groups::Sum sum : {groups::sum_plain, groups::sum_best}) {
      std::vector<Vertex> read;
      const auto use = [&](std::span<const Vertex> piece) {
        read.insert(read.end(), piece.begin(), piece.end());
        return false;
      };
      EXPECT_FALSE(groups::until(bytes.data() + rows.first[v], v, row.size(), use, sum));
      ASSERT_EQ(read, row) << "row " << v;
    }
    const auto [one, two] = rows.front(v);
    EXPECT_EQ(one, row.empty() ? v : row[0]);
    EXPECT_EQ(two, row.size() < 2 ? v : row[1]);
  }
  EXPECT_EQ(rows.entries(), entries);
  EXPECT_LE(rows.bytes(), compressed_bytes(kNone, entries) +
                              lists.size() * (compressed_bytes(1, 0) - compressed_bytes(0, 0)));
}

class CompressedRowsTest : public testing::Test {
 protected:
  static void expect_same(const Lists& lists) {
    with_team("os", 2,
              [&](Team& team, const Memory& memory) { kernels::expect_same(memory, team, lists); });
  }
};

TEST_F(CompressedRowsTest, HaveRowsOfEachLength) {
  std::mt19937 random(1);
  for (const std::uint64_t widest : {1ULL, 1ULL << 8, 1ULL << 16, 1ULL << 24, 1ULL << 31}) {
    Lists lists;
    for (std::size_t size = 0; size < 400; ++size) {
      lists.push_back(random_row(random, size, widest));
    }
    expect_same(lists);
    std::reverse(lists.begin(), lists.end());  // the last row is empty
    expect_same(lists);
  }
}

TEST_F(CompressedRowsTest, HaveDifferencesOfEachLengthAtEachPlace) {
  // All lengths of eight differences: two groups, each of all 256 kinds.
  Lists lists;
  for (std::uint32_t lengths = 0; lengths < 1 << 16; lengths += 257 * 3 + 1) {
    std::vector<Vertex> row = {7};
    std::uint64_t last = 7;
    for (int place = 0; place < 8; ++place) {
      const std::uint64_t length = (lengths >> 2 * place & 3);
      last += length == 0 ? 255 : std::uint64_t{1} << 8 * length;
      if (last < kNone) row.push_back(static_cast<Vertex>(last));
    }
    lists.push_back(std::move(row));
  }
  for (const Vertex edge : {0u, 1u, 127u, 128u, 255u, 256u, 65535u, 65536u, 0xffffffu, 0x1000000u,
                            0x7fffffffu, 0x80000000u, kNone - 1}) {
    lists.push_back({edge});
    if (edge != 0) lists.push_back({0, edge});
    if (edge != 0) lists.push_back({edge - 1, edge});
  }
  lists.push_back({});
  expect_same(lists);
}

TEST_F(CompressedRowsTest, HaveRandomRows) {
  std::mt19937 random(2);
  for (int times = 0; times < 20; ++times) {
    Lists lists(random() % 300);
    for (std::vector<Vertex>& row : lists) {
      row = random_row(random, random() % (1 + random() % 1000),
                       1 + random() % (1u << random() % 32));
    }
    expect_same(lists);
  }
}

TEST_F(CompressedRowsTest, StopWhereTheReaderStops) {
  with_team("os", 1, [](Team& team, const Memory& memory) {
    std::vector<Vertex> row(1000);
    for (Vertex at = 0; at < row.size(); ++at) row[at] = 3 * at;
    const CompressedRows rows(team, memory, rows_of(memory, {row}));
    for (const std::size_t wanted : {0, 3, 4, 5, 83, 84, 999}) {
      std::size_t read = 0;
      EXPECT_TRUE(rows.until(0, [&](std::span<const Vertex> piece) {
        for (const Vertex v : piece) {
          EXPECT_EQ(v, row[read]);
          if (read++ == wanted) return true;
        }
        return false;
      }));
      EXPECT_EQ(read, wanted + 1);
    }
  });
}

// A bound from above, and of graphs as they are not twice as much.
TEST_F(CompressedRowsTest, TakeWhatIsSaidBefore) {
  with_team("os", 2, [](Team& team, const Memory& memory) {
    for (const int scale : {8, 14}) {
      const EdgeList list = kronecker_edges(team, memory, scale, 16, 1);
      Graph graph = build_graph(team, memory, list, {});
      const double plain = bytes_per_entry(graph);
      const CompressedGraph small = compressed(team, memory, std::move(graph));
      EXPECT_LT(bytes_per_entry(small), plain);
      EXPECT_LE(small.out.bytes(), compressed_bytes(small.vertices, small.out.entries()));
      EXPECT_GE(2 * small.out.bytes(), compressed_bytes(small.vertices, small.out.entries()));
    }
  });
}

}  // namespace
}  // namespace atl::kernels
