// Graphs from files: .el and .wel (a line for each edge), .mtx (Matrix Market's coordinates), .sg
// and .wsg (what GAP's converter writes).
//
// Text is parsed by all workers, a MiB of whole lines at a time, from a mapping of the file; a
// first pass counts the lines, so that what the edges need is known before it is taken. Nothing
// that a file says is believed: its sizes are compared with its bytes, each vertex with their
// number.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "arrays.hpp"
#include "graph/edges.hpp"
#include "team.hpp"

namespace atl::kernels {

struct ReadOptions {
  bool weights = false;  // else those of a file are left out
  // Called once, before the edges take memory, with their number, the number of their directions,
  // and at least how many vertices there are.
  FunctionRef<void(std::uint64_t edges, std::uint64_t directions, std::uint64_t vertices)> before;
};

// Whether the name ends as one of the formats' names do.
[[nodiscard]] bool is_graph_file(const std::string& path);

// Within Team::run. The format is that of the path's ending. Throws UsageFault, "PATH:LINE: WHY" or
// "PATH: WHY", for a file that cannot be read or does not follow its format.
[[nodiscard]] EdgeList read_edges(Team& team, const Memory& memory, const std::string& path,
                                  const ReadOptions& options);

// The same of a file's bytes, which need not be in a file.
[[nodiscard]] EdgeList edges_from(Team& team, const Memory& memory, const std::string& path,
                                  std::string_view bytes, const ReadOptions& options);

}  // namespace atl::kernels
