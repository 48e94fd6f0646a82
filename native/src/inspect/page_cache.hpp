// Finds which pages of a file are in the page cache, and on which memory nodes.
//
// No system call reports the node of a cached page. So this code maps the file read-only and
// shared, gets the resident pages from mincore(2), touches some of them and calls move_pages(2)
// on its own process. If a page is dropped between mincore and the touch, the kernel reads in
// that one page; this race cannot be avoided. No other page is ever read in.
//
// Cost: mincore checks at most 131,072 pages (512 MiB). In a larger file it checks 2,048 evenly
// spread pieces. cachestat(2) (Linux 6.5) then counts the cached pages. Above about 64 GiB of
// cached pages, and before 6.5, the count is estimated from the pieces. `most_pages` of the
// resident pages are touched: one at random from each of that many equal parts (always the same
// pages).
//
// Since Linux 5.2 mincore answers only the file's owner and those who may write it; for others
// every page appears resident. cached_nodes then throws EPERM.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace atl::inspect {

struct FilePages {
  std::uint64_t size_bytes = 0;
  std::uint64_t cached_pages = 0;
  std::vector<std::int32_t> nodes;  // of the touched pages
};

// Throws std::system_error: the file's own errors, EISDIR, EINVAL (not a regular file, or on
// hugetlbfs), ENODEV (a file system without mmap), EPERM (see above).
FilePages cached_nodes(const std::string& path, std::uint64_t most_pages);

}  // namespace atl::inspect
