// The kernels' memory: arrays of the runtime, of the kind that the user chose (--arrays).
//
// The kinds are Shoal's (Kaestle et al., USENIX ATC 2015), with which ARCAS 5.3 compares: all on
// one node, pages in turn over the nodes, or a part for each worker on its node.
#pragma once

#include <cstddef>
#include <string_view>

#include "atoll/runtime/array.hpp"
#include "team.hpp"

namespace atl::kernels {

enum class ArrayKind { kLocal, kInterleaved, kPartitioned };

struct Memory {
  NodeMap nodes;
  ArrayKind kind = ArrayKind::kPartitioned;
  Pages pages = Pages::transparent;
};

// Zeroes; pages appear where they belong when they are first touched. Throws RuntimeFault.
template <Placeable T>
[[nodiscard]] Array<T> make_array(const Memory& memory, std::size_t size) {
  switch (memory.kind) {
    case ArrayKind::kLocal: return Array<T>::local(size, memory.nodes.nodes.front(), memory.pages);
    case ArrayKind::kInterleaved: return Array<T>::interleaved(size, memory.nodes, memory.pages);
    case ArrayKind::kPartitioned: break;
  }
  return Array<T>::partitioned(size, memory.nodes, memory.pages);
}

}  // namespace atl::kernels
