// The kernel's page policies behind one interface: all system calls of placed memory go through it,
// so that tests can replace it by a kernel of four nodes (fake_kernel.hpp).
//
// mbind(2) sets where pages that are touched from now on go; move_pages(2) reports where present
// pages are and moves them. No call throws: 0 is success, else an errno.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "stacks/page_size.hpp"

namespace atl::runtime {

enum class Placement {
  // The node's memory while it has some, else a neighbour's: MPOL_PREFERRED. Not MPOL_BIND, under
  // which the kernel kills the process when the node is full.
  kPreferred,
  // That node's memory or none: MPOL_BIND. For huge pages of a pool, which are populated at once;
  // pages of a neighbour would be a silent fallback.
  kBound,
  // The pages take turns over the nodes: MPOL_INTERLEAVE.
  kInterleaved,
};

class PagePolicy {
 public:
  PagePolicy() = default;
  PagePolicy(const PagePolicy&) = delete;
  PagePolicy& operator=(const PagePolicy&) = delete;
  virtual ~PagePolicy() = default;

  // Pages of [at, at + bytes) that are touched from now on. ENOSYS: a kernel without NUMA. EPERM:
  // forbidden by a sandbox. EINVAL: a node that does not exist, has no memory or is not allowed.
  virtual int place(std::byte* at, std::size_t bytes, Placement, std::span<const int> nodes) = 0;
  // The node of each page; negative: an errno, -ENOENT or -EFAULT for one that nobody touched.
  virtual int look(std::span<void* const> pages, std::span<int> nodes) = 0;
  // Moves each page to `node`. The status of a page is a node or a negative errno, and stays
  // unchanged if the kernel does not report it: query it again.
  virtual int move(std::span<void* const> pages, int node, std::span<int> status) = 0;
  // A mapping of huge pages of the pool of this size. ENOMEM: the pool has too few. EINVAL: there
  // is no such size.
  virtual int map_pool(std::size_t bytes, std::size_t page_bytes, std::byte*& at) = 0;
  // Transparent huge pages for the range. ENOTSUP: the system's switch is at never. EINVAL: a
  // kernel without them.
  virtual int want_huge(std::byte* at, std::size_t bytes) = 0;
  // Touches all pages. EFAULT or ENOMEM: too few pages. EINVAL: before Linux 5.14.
  virtual int populate(std::byte* at, std::size_t bytes) = 0;
  // The node of the calling thread's CPU; 0 if the kernel does not report it.
  virtual int node_here() = 0;
  // Whether only one node has memory, so that there is nothing to choose.
  virtual bool one_node() = 0;
};

// The running kernel. Never destroyed.
[[nodiscard]] PagePolicy& kernel_page_policy();

// The nodes that this process may have memory on; {0} if the kernel does not report them.
[[nodiscard]] std::vector<int> nodes_with_memory();

// The size of a transparent huge page; 2 MiB if the kernel does not report it.
[[nodiscard]] std::size_t huge_page_bytes();

// Empty if memory policies work or there is nothing to choose; else why not, and what to do. Places
// one page to find out.
[[nodiscard]] std::string why_unplaced(PagePolicy& policy);

// "node 3" or "nodes 0, 2".
[[nodiscard]] std::string nodes_in_words(std::span<const int> nodes);
// An errno in words.
[[nodiscard]] std::string in_words(int error);

}  // namespace atl::runtime
