// GAP's serialized graphs: one byte whether directed; the numbers of edges, each direction counted,
// and of vertices, as 64-bit integers; vertices + 1 offsets of 64 bits; a 32-bit vertex for each
// edge, in .wsg with its 32-bit weight; of a directed graph the same again for incoming edges. No
// padding, least significant bytes first.
#pragma once

#include <string>
#include <string_view>

#include "graph/read.hpp"

namespace atl::kernels {

[[nodiscard]] EdgeList read_serialized(Team& team, const Memory& memory, const std::string& path,
                                       std::string_view bytes, const ReadOptions& options);

}  // namespace atl::kernels
