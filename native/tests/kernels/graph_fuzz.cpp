// A fuzz target for the readers of graphs: the first byte chooses the format, the others are the
// file. Whatever they are, there is a list of edges between its vertices, or one line that says why
// not.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include "graph/build.hpp"
#include "graph/read.hpp"
#include "team.hpp"
#include "workload.hpp"

namespace {

using namespace atl::kernels;

void require(bool good) {
  if (!good) std::abort();
}

void read(Team& team, const Memory& memory, const std::string& path, std::string_view bytes) {
  const EdgeList list = edges_from(team, memory, path, bytes,
                                   {true, [](std::uint64_t edges, std::uint64_t, std::uint64_t) {
                                      require(edges <= 1 << 24);  // no more than the file has
                                    }});
  for (const Edge edge : list.edges) require(edge.from < list.vertices && edge.to < list.vertices);
  if (list.weights) {
    for (const Weight weight : *list.weights) require(weight > 0);
  }
  if (list.vertices > 1 << 16) return;
  const Graph graph = build_graph(team, memory, list, {.weights = true});
  require(graph.out.to.size() == graph.out.first[graph.vertices]);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::unique_ptr<Team> team = make_team({"os", 2, ""});
  static const Memory memory{.nodes = team->nodes(), .pages = atl::Pages::normal};
  constexpr const char* kPaths[] = {"a.el", "a.wel", "a.mtx", "a.sg", "a.wsg"};
  if (size == 0) return 0;
  const std::string path = kPaths[data[0] % std::size(kPaths)];
  // A copy that ends where the bytes do, so that a sanitizer sees what is read past them.
  const std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const auto copy = std::make_unique<char[]>(bytes.size());
  if (!bytes.empty()) std::memcpy(copy.get(), bytes.data(), bytes.size());
  try {
    team->run([&] { read(*team, memory, path, {copy.get(), bytes.size()}); });
  } catch (const UsageFault& fault) {
    const std::string_view why = fault.what();
    require(why.starts_with(path + ":") && why.find('\n') == why.npos);
  }
  return 0;
}
