// Which pages of a file the page cache holds, and on which memory nodes.
//
// No system call tells the node of a page of the cache. So we map the file read-only and shared,
// ask mincore(2) which pages are there, touch some of those and ask move_pages(2) about
// ourselves. A page that is dropped between mincore and the touch is read in again, alone; that
// race cannot be closed, and nothing else is ever read in.
//
// Cost: mincore looks at 131,072 pages (512 MiB) at most. Of a larger file these are 2,048 pieces
// that are spread evenly; how much of the file is cached is then counted by cachestat(2) (Linux
// 6.5), unless it seems to be more than 64 GiB: then, and before 6.5, it is estimated from the
// pieces. Of the pages that are there, `most_pages` are touched, one at random out of each of as
// many equal parts (always the same ones).
//
// Since Linux 5.2 mincore tells only who owns the file or may write it; to others every page
// seems to be there. cached_nodes refuses with EPERM then.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace atl::inspect {

struct FilePages {
  std::uint64_t size_bytes = 0;
  std::uint64_t cached_pages = 0;
  std::vector<std::int32_t> nodes;  // of the pages that were touched
};

// Throws std::system_error: the file's own errors, EISDIR, EINVAL (not a regular file, or one on
// hugetlbfs), ENODEV (a file system without mmap), EPERM (see above).
FilePages cached_nodes(const std::string& path, std::uint64_t most_pages);

}  // namespace atl::inspect
