// Allocators for containers of std, by node: std::pmr's seam, on which every container and many
// libraries already run, instead of an allocator type of our own that would spread through theirs.
//
//   std::pmr::vector<int> rows(&atl::local_memory());          // on the caller's node
//   std::pmr::unordered_map<K, V> index(&atl::local_memory(1));
//
// Behind each is std::pmr::synchronized_pool_resource over chunks placed like an Array's: any
// thread may allocate and free. Freed small blocks are used again, not given back; a block above
// 32 KiB is a mapping of its own (about 10 microseconds) and is given back. Freeing costs least on
// the thread that allocated: from another one a lock is taken and the pools of all are searched.
#pragma once

#include <memory_resource>

#include "atoll/runtime/export.hpp"
#include "atoll/runtime/placed_memory.hpp"

namespace atl {

// The resources live as long as the process; the same node gives the same resource. RuntimeFault:
// no such node. When memory is out, allocating throws std::bad_alloc, as containers expect.
[[nodiscard]] ATOLL_EXPORT std::pmr::memory_resource& local_memory(int node);
// Of the node that the caller runs on now, and then of that node whoever allocates.
[[nodiscard]] ATOLL_EXPORT std::pmr::memory_resource& local_memory();
// Page by page in turn over `map.nodes`, in any order.
[[nodiscard]] ATOLL_EXPORT std::pmr::memory_resource& interleaved_memory(const NodeMap& map);

}  // namespace atl
