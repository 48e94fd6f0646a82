// Finds on which memory nodes a process's pages are, and which pages are huge; moves pages.
//
// move_pages(2) without target nodes moves nothing and reports the node of each page. The kernel
// takes mmap_lock for 16 pages at a time (mm/migrate.c, do_pages_stat), so the target's page
// faults and mmap calls wait for microseconds, however large the process is. PAGEMAP_SCAN (Linux
// 6.7, Documentation/admin-guide/mm/pagemap.rst) reports whether a huge entry maps a page.
//
// Throws std::system_error: ESRCH, EPERM (another user's process, or a container whose seccomp
// profile forbids it), EINVAL (a kernel thread, or a process that is ending), ENOSYS.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <span>

namespace atl::inspect {

// Writes the node of the page at each address, or a negative errno (-ENOENT: no page there,
// -EFAULT: no mapping, or the zero page). `nodes` is as long as `addresses`.
void page_nodes(pid_t pid, std::span<const std::uint64_t> addresses, std::span<std::int32_t> nodes);

// Moves the pages at these addresses to a node, except those that other processes map too. `status`
// is as long as `addresses`: where each page is now, or a negative errno (-ENOENT: no page there,
// -EACCES: others map it, -EBUSY, -ENOMEM: no room on the node). Throws ENODEV for a node that does
// not exist or has no memory, too.
void move_pages(pid_t pid, std::span<const std::uint64_t> addresses, int node,
                std::span<std::int32_t> status);

// Writes 1 for each address that a huge page maps, else 0. ENOTTY: there is no PAGEMAP_SCAN.
void huge_pages(pid_t pid, std::span<const std::uint64_t> addresses, std::span<std::uint8_t> huge);

}  // namespace atl::inspect
