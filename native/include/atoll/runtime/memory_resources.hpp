// Allocators by node for std containers, through std::pmr, which every container and many libraries
// support, instead of an allocator type of our own that would spread through theirs.
//
//   std::pmr::vector<int> rows(&atl::local_memory());          // on the caller's node
//   std::pmr::unordered_map<K, V> index(&atl::local_memory(1));
//
// Each is a std::pmr::synchronized_pool_resource over chunks placed like an Array's: any thread may
// allocate and free. Freed small blocks are reused, not returned to the system; a block above 32
// KiB is a separate mapping (about 10 microseconds) and is returned. Freeing is cheapest on the
// thread that allocated; on another it takes a lock and searches the pools of all threads.
#pragma once

#include <memory_resource>

#include "atoll/runtime/export.hpp"
#include "atoll/runtime/placed_memory.hpp"

namespace atl {

// The resources live as long as the process, one per node. Throws RuntimeFault if there is no such
// node. Out of memory, they throw std::bad_alloc, as containers expect.
[[nodiscard]] ATOLL_EXPORT std::pmr::memory_resource& local_memory(int node);
// On the node that the caller runs on now, whichever thread allocates later.
[[nodiscard]] ATOLL_EXPORT std::pmr::memory_resource& local_memory();
// The pages take turns over `map.nodes`, in any order.
[[nodiscard]] ATOLL_EXPORT std::pmr::memory_resource& interleaved_memory(const NodeMap& map);

}  // namespace atl
