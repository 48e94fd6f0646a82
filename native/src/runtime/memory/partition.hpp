// How an array is split among ranks: by whole pages, as evenly as pages allow. Pure.
//
// A page is on one node, so the boundary between two ranks' blocks is a page boundary: the one
// nearest to rank * bytes / ranks. Hence every block is within a page of an even share, for any
// number of ranks; with fewer pages than ranks some blocks are empty.
#pragma once

#include <cstddef>

namespace atl::runtime {

// Where the block of `rank` begins, in bytes: 0 for rank 0, `bytes` for rank == ranks, else a
// multiple of `page_bytes` (a power of two). Needs 0 <= rank <= ranks < 2^31, ranks >= 1.
[[nodiscard]] std::size_t block_begin(std::size_t bytes, std::size_t page_bytes, int ranks,
                                      int rank);

}  // namespace atl::runtime
