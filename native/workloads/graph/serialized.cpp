#include "graph/serialized.hpp"

#include <atomic>
#include <cstring>

#include "workload.hpp"
#include "workloads/hash.hpp"

namespace atl::kernels {
namespace {

constexpr std::size_t kHead = 1 + 2 * sizeof(std::uint64_t);

// The bytes lie anywhere.
template <class T>
T at(std::string_view bytes, std::size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

std::uint64_t mark(Vertex from, Vertex to, Weight weight) {
  const std::uint64_t pair = std::uint64_t{from} << 32 | to;
  return workloads::mixed(workloads::mixed(pair) + static_cast<std::uint64_t>(weight));
}

}  // namespace

EdgeList read_serialized(Team& team, const Memory& memory, const std::string& path,
                         std::string_view bytes, const ReadOptions& options) {
  const auto fail = [&](const std::string& why) { throw UsageFault(path + ": " + why); };
  if (bytes.size() < kHead) fail("ends within its head of " + std::to_string(kHead) + " bytes");
  const auto directed = at<std::uint8_t>(bytes, 0);
  const auto edges = at<std::uint64_t>(bytes, 1);
  const auto vertices = at<std::uint64_t>(bytes, 1 + sizeof edges);
  if (directed > 1) fail("does not begin with a byte that is 0 or 1");
  if (vertices > kNone) {  // GAP's are signed
    fail("its head says " + std::to_string(static_cast<std::int64_t>(vertices)) +
         " vertices, which are not from 0 to 4294967295");
  }
  const bool weighted = path.ends_with(".wsg");
  const std::size_t entry = sizeof(Vertex) + (weighted ? sizeof(Weight) : 0);
  const std::size_t offsets = (vertices + 1) * sizeof(std::uint64_t);
  if (edges > bytes.size() / entry ||
      bytes.size() != kHead + (offsets + edges * entry) * (directed + std::size_t{1})) {
    fail("has " + std::to_string(bytes.size()) + " bytes, which do not fit the " +
         std::to_string(vertices) + " vertices and " +
         std::to_string(static_cast<std::int64_t>(edges)) + " edges of its head");
  }
  options.before(edges, (directed + std::uint64_t{1}) * edges, vertices);
  const bool weights = weighted && options.weights;
  EdgeList list{static_cast<Vertex>(vertices),
                make_array<Edge>(memory, edges),
                {},
                directed == 0,
                directed == 0};
  if (weights) list.weights.emplace(make_array<Weight>(memory, edges));
  // Zero if each edge is there both ways, with one weight, and but for one case in 2^64 only then:
  // in an undirected file in the rows of both vertices, in a directed one among the edges that go
  // out and, reversed, among those that come in.
  std::atomic<std::uint64_t> sum{0};
  for (std::size_t half = 0; half <= directed; ++half) {
    const std::size_t begin_of_half = kHead + half * (offsets + edges * entry);
    team.loop(vertices, 0, [&](std::size_t begin, std::size_t end) {
      std::uint64_t own_sum = 0;
      for (std::size_t v = begin; v < end; ++v) {
        const auto first = at<std::uint64_t>(bytes, begin_of_half + v * sizeof(std::uint64_t));
        const auto last = at<std::uint64_t>(bytes, begin_of_half + (v + 1) * sizeof(std::uint64_t));
        if (first > last || last > edges || (v == 0 && first != 0) ||
            (v == vertices - 1 && last != edges)) {
          fail("the offsets of vertex " + std::to_string(v) + " are wrong");
        }
        for (std::uint64_t edge = first; edge < last; ++edge) {
          const std::size_t offset = begin_of_half + offsets + edge * entry;
          const auto to = at<Vertex>(bytes, offset);
          if (to >= vertices) {
            fail("vertex " + std::to_string(v) + " has an edge to " + std::to_string(to) +
                 ", and there are only " + std::to_string(vertices) + " vertices");
          }
          const auto from = static_cast<Vertex>(v);
          const Weight weight = weighted ? at<Weight>(bytes, offset + sizeof to) : 1;
          if (weight < 1) {
            fail("the edge from " + std::to_string(v) + " to " + std::to_string(to) +
                 " has weight " + std::to_string(weight) + ", which is less than 1");
          }
          if (half == 0) {
            list.edges[edge] = {from, to};
            if (weights) (*list.weights)[edge] = weight;
          }
          const bool first_way = directed ? half == 0 : from < to;
          if (!directed && from == to) continue;
          own_sum += first_way ? mark(from, to, weight) : 0 - mark(to, from, weight);
        }
      }
      sum.fetch_add(own_sum, std::memory_order_relaxed);  // read after the loop
    });
  }
  if (vertices == 0 && edges != 0) fail("has edges without vertices");
  if (sum != 0) {
    fail(directed ? "the edges that come in are not those that go out"
                  : "claims to be undirected, and an edge is not the same both ways");
  }
  return list;
}

}  // namespace atl::kernels
