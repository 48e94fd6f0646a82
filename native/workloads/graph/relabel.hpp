// Gives vertices new names by descending degree, as triangle counting wants it: the neighbours with
// many edges come first in a row.
//
// Edges come by ascending new name, and each is moved once to its row, so rows are sorted as they
// are written (a transposition). Time O(vertices + edges).
#pragma once

#include "arrays.hpp"
#include "graph/graph.hpp"
#include "team.hpp"

namespace atl::kernels {

enum class Keep {
  kAll,
  kLower,  // of each edge one direction: rows have the vertices before theirs, of higher degree
};

// The graph must be undirected. Vertices of the same degree stay in order. Throws RuntimeFault if
// there is no memory.
[[nodiscard]] Graph relabelled(Team& team, const Memory& memory, const Graph& graph,
                               Keep keep = Keep::kAll);

}  // namespace atl::kernels
