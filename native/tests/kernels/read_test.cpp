// Graph files: what is read from good ones, and how bad ones are refused.
#include "graph/read.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "base/available.hpp"
#include "graph/build.hpp"
#include "graph/make.hpp"
#include "graph/mapped_file.hpp"
#include "kernels/graphs.hpp"
#include "workload.hpp"

namespace atl::kernels {
namespace {

using Edges = std::vector<std::tuple<Vertex, Vertex, Weight>>;  // weight 0 without weights

struct Read {
  Vertex vertices = 0;
  Edges edges = {};
  bool symmetric = false;
  std::string fault = {};
};

Read read(const std::string& path, std::string_view bytes, bool weights = true, int workers = 2) {
  Read found;
  with_team("os", workers, [&](Team& team, const Memory& memory) {
    try {
      const EdgeList list = edges_from(
          team, memory, path, bytes, {weights, [](std::uint64_t, std::uint64_t, std::uint64_t) {}});
      found.vertices = list.vertices;
      found.symmetric = list.symmetric;
      for (std::size_t at = 0; at < list.edges.size(); ++at) {
        found.edges.emplace_back(list.edges[at].from, list.edges[at].to,
                                 list.weights ? (*list.weights)[at] : 0);
      }
    } catch (const UsageFault& fault) {
      found.fault = fault.what();
    }
  });
  return found;
}

TEST(ReadEdges, TakesListsAsPeopleWriteThem) {
  const Edges expected = {{0, 1, 0}, {3, 2, 0}, {3, 3, 0}, {0, 1, 0}};
  for (const std::string_view text :
       {"0 1\n3 2\n3 3\n0 1\n", "# head\n0 1\r\n\r\n 3\t2 \r\n% more\n3 3\n  # x\n0 1"}) {
    const Read found = read("a.el", text);
    EXPECT_EQ(found.fault, "");
    EXPECT_EQ(found.edges, expected);
    EXPECT_EQ(found.vertices, 4u);
    EXPECT_FALSE(found.symmetric);
  }
  EXPECT_EQ(read("a.el", "").edges, Edges{});
  EXPECT_EQ(read("a.el", "").vertices, 0u);
  EXPECT_EQ(read("a.el", "0 4294967294").vertices, 4294967295u);
}

TEST(ReadEdges, TakesWeights) {
  EXPECT_EQ(read("a.wel", "0 1 5\n1 2 2147483647\n2 0 3.0\n2 1 1e2").edges,
            (Edges{{0, 1, 5}, {1, 2, 2147483647}, {2, 0, 3}, {2, 1, 100}}));
  EXPECT_EQ(read("a.wel", "0 1 5", false).edges, (Edges{{0, 1, 0}}));
}

TEST(ReadEdges, TakesMatrixMarket) {
  const Read pattern =
      read("a.mtx", "%%MatrixMarket matrix coordinate pattern general\n% c\n\n3 3 2\n1 2\n3 3\n");
  EXPECT_EQ(pattern.fault, "");
  EXPECT_EQ(pattern.edges, (Edges{{0, 1, 0}, {2, 2, 0}}));
  EXPECT_EQ(pattern.vertices, 3u);
  EXPECT_FALSE(pattern.symmetric);
  const Read real =
      read("a.mtx", "%%matrixmarket MATRIX Coordinate Real Symmetric\r\n5 5 1\r\n2 1 7.0\r\n");
  EXPECT_EQ(real.fault, "");
  EXPECT_EQ(real.edges, (Edges{{1, 0, 7}}));
  EXPECT_EQ(real.vertices, 5u);
  EXPECT_TRUE(real.symmetric);
  // Values that are no weights matter only to kernels that need weights.
  const std::string odd = "%%MatrixMarket matrix coordinate real general\n2 2 1\n2 1 -0.5\n";
  EXPECT_EQ(read("a.mtx", odd, false).edges, (Edges{{1, 0, 0}}));
  EXPECT_EQ(read("a.mtx", odd).fault,
            "a.mtx:3: weight '-0.5' is not a whole number from 1 to 2147483647");
}

TEST(ReadEdges, SaysWhatIsWrongWithALine) {
  const std::string mtx = "%%MatrixMarket matrix coordinate pattern general\n";
  const std::vector<std::tuple<std::string, std::string, std::string>> cases = {
      {"a.el", "0 1\n\n2\n", "a.el:3: '2' does not begin with two vertices"},
      {"a.el", "0 1\n1 -2\n", "a.el:2: '1 -2' does not begin with two vertices"},
      {"a.el", "0 1.5\n", "a.el:1: '0 1.5' does not begin with two vertices"},
      {"a.el", "0 1 2\n", "a.el:1: '2' is too much on the line"},
      {"a.el", std::string("0 \0 1\n", 6), "a.el:1: '0 ? 1' does not begin with two vertices"},
      {"a.el", "0 4294967295\n", "a.el:1: vertex 4294967295 is not from 0 to 4294967294"},
      {"a.el", "99999999999999999999999 1\n",
       "a.el:1: vertex 18446744073709551615 or more is not from 0 to 4294967294"},
      {"a.wel", "0 1 2\n0 1", "a.wel:2: no number follows the two vertices"},
      {"a.wel", "0 1 -3", "a.wel:1: weight '-3' is not a whole number from 1 to 2147483647"},
      {"a.wel", "0 1 nan", "a.wel:1: weight 'nan' is not a whole number from 1 to 2147483647"},
      {"a.wel", "0 1 0", "a.wel:1: weight '0' is not a whole number from 1 to 2147483647"},
      {"a.wel", "0 1 2147483648",
       "a.wel:1: weight '2147483648' is not a whole number from 1 to 2147483647"},
      {"a.mtx", "", "a.mtx:1: not '%%MatrixMarket matrix coordinate'"},
      {"a.mtx", "%%MatrixMarket matrix array real general\n2 2\n",
       "a.mtx:1: not '%%MatrixMarket matrix coordinate'"},
      {"a.mtx", "%%MatrixMarket matrix coordinate complex general\n1 1 0\n",
       "a.mtx:1: field 'complex' is not pattern, integer or real"},
      {"a.mtx", "%%MatrixMarket matrix coordinate real hermitian\n1 1 0\n",
       "a.mtx:1: symmetry 'hermitian' is not general or symmetric"},
      {"a.mtx", mtx, "a.mtx: ends before its numbers of rows, columns and entries"},
      {"a.mtx", mtx + "3 3\n", "a.mtx:2: not the numbers of rows, columns and entries"},
      {"a.mtx", mtx + "3 4 1\n1 1\n", "a.mtx:2: the matrix is not square"},
      {"a.mtx", mtx + "4294967296 4294967296 1\n1 1\n",
       "a.mtx:2: 4294967296 vertices are more than 4294967295"},
      {"a.mtx", mtx + "3 3 2\n1 1\n", "a.mtx: its header says 2 entries, and there are 1"},
      {"a.mtx", mtx + "3 3 0\n1 1\n", "a.mtx: its header says 0 entries, and there are 1"},
      {"a.mtx", mtx + "3 3 1\n0 1\n", "a.mtx:3: vertex 0 is not from 1 to 3"},
      {"a.mtx", mtx + "3 3 1\n1 4\n", "a.mtx:3: vertex 4 is not from 1 to 3"},
  };
  for (const auto& [path, text, fault] : cases) EXPECT_EQ(read(path, text).fault, fault);
}

TEST(ReadEdges, NamesTheFirstBadLineOfALongFile) {
  std::string text;
  for (int line = 1; line <= 500'000; ++line) {
    text += line == 300'000 || line == 450'000 ? "oh\n" : "1 2\n";
  }
  for (const int workers : {1, 2, 7}) {
    EXPECT_EQ(read("a.el", text, false, workers).fault,
              "a.el:300000: 'oh' does not begin with two vertices");
  }
}

TEST(ReadEdges, ReadsLongFilesInParts) {
  std::string text;
  Edges expected;
  std::mt19937 random(1);
  for (int line = 0; line < 300'000; ++line) {
    const auto from = static_cast<Vertex>(random() >> random() % 32);
    const auto to = static_cast<Vertex>(random() >> (1 + random() % 31));
    const auto weight = static_cast<Weight>(1 + random() % 1000);
    expected.emplace_back(std::min(from, kNone - 1), to, weight);
    text += std::to_string(std::get<0>(expected.back())) + " " + std::to_string(to) + " " +
            std::to_string(weight) + (line % 7 == 0 ? "\n# between\n" : "\n");
  }
  for (const int workers : {1, 2, 7}) EXPECT_EQ(read("a.wel", text, true, workers).edges, expected);
}

TEST(MappedFileDeathTest, AFileThatBecomesShorterEndsTheProgramWithALine) {
  const std::string path = ::testing::TempDir() + "atoll-kernels-shorter.el";
  const auto read_to_the_end = [&] {
    std::ofstream(path) << std::string(1 << 20, '\n');
    const MappedFile file(path);
    std::filesystem::resize_file(path, 5000);
    const volatile char last = file.text().back();
    std::exit(last == '\n' ? 0 : 1);
  };
  EXPECT_EXIT(read_to_the_end(), testing::ExitedWithCode(2),
              "^atoll-kernels: .*shorter.el: became shorter while it was read");
  std::remove(path.c_str());
}

struct HalfOfFile {
  std::vector<std::uint64_t> offsets;
  std::vector<Vertex> to;
};

// As GAP's converter writes them. Directed ones have the edges that come in as well.
std::string serialized(std::uint64_t edges, std::uint64_t vertices,
                       const std::vector<HalfOfFile>& halves) {
  std::string bytes(1, static_cast<char>(halves.size() - 1));
  const auto add = [&](const auto& value) {
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  };
  add(edges);
  add(vertices);
  for (const HalfOfFile& half : halves) {
    for (const std::uint64_t offset : half.offsets) add(offset);
    for (const Vertex vertex : half.to) add(vertex);
  }
  return bytes;
}

TEST(ReadEdges, TakesSerializedGraphs) {
  const std::string path = serialized(4, 3, {{{0, 1, 3, 4}, {1, 0, 2, 1}}});
  const Read found = read("a.sg", path);
  EXPECT_EQ(found.fault, "");
  EXPECT_EQ(found.edges, (Edges{{0, 1, 0}, {1, 0, 0}, {1, 2, 0}, {2, 1, 0}}));
  EXPECT_TRUE(found.symmetric);
  const Read directed = read("a.sg", serialized(2, 2, {{{0, 2, 2}, {0, 1}}, {{0, 1, 2}, {0, 0}}}));
  EXPECT_EQ(directed.fault, "");
  EXPECT_EQ(directed.edges, (Edges{{0, 0, 0}, {0, 1, 0}}));
  EXPECT_FALSE(directed.symmetric);
  const std::string weighted = serialized(2, 2, {{{0, 1, 2}, {1, 9, 0, 9}}});
  EXPECT_EQ(read("a.wsg", weighted).edges, (Edges{{0, 1, 9}, {1, 0, 9}}));
}

TEST(ReadEdges, BelievesNothingOfSerializedGraphs) {
  const std::vector<std::tuple<std::string, std::string, std::string>> cases = {
      {"a.sg", "", "ends within its head of 17 bytes"},
      {"a.sg", serialized(2, 2, {{{0, 1, 2}, {1}}}),
       "has 45 bytes, which do not fit the 2 vertices and 2 edges of its head"},
      {"a.sg", serialized(2, 2, {{{0, 1, 2}, {1, 0, 0}}}),
       "has 53 bytes, which do not fit the 2 vertices and 2 edges of its head"},
      {"a.sg", serialized(~std::uint64_t{0}, 2, {{{0, 1, 2}, {1, 0}}}),
       "has 49 bytes, which do not fit the 2 vertices and -1 edges of its head"},
      {"a.sg", serialized(2, ~std::uint64_t{0}, {{{0, 1, 2}, {1, 0}}}),
       "its head says -1 vertices, which are not from 0 to 4294967295"},
      // Of two faults either may be found.
      {"a.sg", serialized(2, 2, {{{0, 2, 3}, {1, 0}}}), "the offsets of vertex 1 are wrong"},
      {"a.sg", serialized(2, 3, {{{0, 2, 1, 2}, {1, 0}}}), "the offsets of vertex 1 are wrong"},
      {"a.sg", serialized(2, 2, {{{1, 1, 2}, {1, 0}}}), "the offsets of vertex 0 are wrong"},
      {"a.sg", serialized(2, 2, {{{0, 1, 1}, {1, 0}}}), "the offsets of vertex 1 are wrong"},
      {"a.sg", serialized(2, 2, {{{0, 1, 2}, {1, 2}}}),
       "vertex 1 has an edge to 2, and there are only 2 vertices"},
      {"a.sg", serialized(1, 2, {{{0, 1, 1}, {1}}}),
       "claims to be undirected, and an edge is not the same both ways"},
      {"a.sg", serialized(1, 2, {{{0, 1, 1}, {1}}, {{0, 1, 1}, {0}}}),
       "the edges that come in are not those that go out"},
      {"a.sg", serialized(1, 2, {{{0, 1, 1}, {1}}, {{0, 0, 1}, {2}}}),
       "vertex 1 has an edge to 2, and there are only 2 vertices"},
      {"a.wsg", serialized(2, 2, {{{0, 1, 2}, {1, 9, 0, 8}}}),
       "claims to be undirected, and an edge is not the same both ways"},
      {"a.wsg", serialized(2, 2, {{{0, 1, 2}, {1, 9, 0, 0}}}),
       "the edge from 1 to 0 has weight 0, which is less than 1"},
  };
  for (const auto& [path, bytes, fault] : cases) {
    EXPECT_EQ(read(path, bytes).fault, path + ": " + fault);
  }
}

// The graph in a few words, or the fault. `text`: what to have in the file, if anything.
std::string made(const std::string& graph, std::string_view text,
                 std::map<std::string, std::string> values = {},
                 const GraphNeeds& needs = {.incoming = true}) {
  if (!text.empty()) std::ofstream(graph, std::ios::binary) << text;
  values.insert({{"graph", graph}, {"scale", "20"}, {"degree", "16"}, {"relabel", "no"}});
  std::string said;
  with_team("os", 1, [&](Team& team, const Memory& memory) {
    Conditions conditions{.memory = memory};
    try {
      const Graph found = make_graph(team, Settings(values), conditions, needs);
      said = std::to_string(found.vertices) + " vertices, " + std::to_string(found.edges) +
             (found.in ? " edges one way" : " edges");
    } catch (const UsageFault& fault) {
      said = fault.what();
    }
  });
  if (!text.empty()) std::remove(graph.c_str());
  return said;
}

TEST(MakeGraph, ReadsFilesAndSaysWhyNot) {
  const std::string list = ::testing::TempDir() + "atoll-kernels.el";
  const std::string matrix = ::testing::TempDir() + "atoll-kernels.mtx";
  const std::string symmetric =
      "%%MatrixMarket matrix coordinate pattern symmetric\n9 9 2\n2 1\n3 3\n";
  EXPECT_EQ(made(list, "0 1\n1 0\n1 1\n4 1\n4 1\n"), "5 vertices, 2 edges");
  EXPECT_EQ(made(list, "0 1\n1 0\n4 1\n", {{"directed", "yes"}}), "5 vertices, 3 edges one way");
  EXPECT_EQ(made(list, "0 1\n4 1\n", {{"relabel", "yes"}}), "5 vertices, 2 edges");
  EXPECT_EQ(made(matrix, symmetric, {{"directed", "yes"}}), "9 vertices, 1 edges");
  EXPECT_EQ(made(list, "0 1\n", {{"directed", "yes"}, {"relabel", "yes"}}),
            "--relabel yes: the graph must be undirected");
  EXPECT_EQ(made(list, "5 5\n"),
            "--graph " + list + ": no edges but from a vertex to itself; kernels need others");
  EXPECT_EQ(made(list, "#\n"), "--graph " + list + ": has no edges; kernels need some");
  EXPECT_EQ(made(list, "0 1\n", {{"relabel", "yes"}, {"save", list}}),
            "--save, --relabel yes: its vertices have new numbers; leave one of them out");
  EXPECT_EQ(made("no.el", ""), "no.el: No such file or directory");
  EXPECT_EQ(made("round", ""),
            "--graph round: not kronecker, uniform or a file .el, .wel, .mtx, .sg or .wsg");
  // What the kernel takes counts, too.
  constexpr std::uint64_t kMuch = std::uint64_t{1} << 50;
  const std::string too_much = list + ": its graph needs 2097152.0 GiB of memory, and ";
  EXPECT_TRUE(made(list, "0 1\n", {}, {.of_vertex = kMuch}).starts_with(too_much));
  EXPECT_TRUE(made(list, "0 1\n", {}, {.of_edge = kMuch}).starts_with(too_much));
  EXPECT_EQ(made(list, "0 1\n", {{"variant", "shared"}}, {.of_message = kMuch}),
            "2 vertices, 1 edges");
  EXPECT_TRUE(
      made(list, "0 1\n", {{"variant", "messages"}}, {.of_message = kMuch}).starts_with(too_much));
  if (base::available_bytes() < std::uint64_t{64} << 30) {
    EXPECT_TRUE(made(list, "0 4294967294\n").starts_with(list + ": its graph needs 64.0 GiB of"));
  }
}

}  // namespace
}  // namespace atl::kernels
