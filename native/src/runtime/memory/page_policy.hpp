// What the kernel does with pages, as one seam: all system calls of placed memory go through it, so
// that tests can put a kernel of four nodes in its place (runtime_memory_fake_kernel.hpp).
//
// mbind(2) says where pages that are touched from now on shall lie, move_pages(2) where present
// ones lie and moves them. No call throws: 0 is success, else an errno.
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
  // That node's memory or none: MPOL_BIND. For huge pages of a pool, which are populated at once
  // and of which a neighbour's would be a silent fallback.
  kBound,
  // Page by page in turn over the nodes: MPOL_INTERLEAVE.
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
  // Each page to `node`. The status of a page is a node or a negative errno, and is left alone
  // where the kernel does not say: look again.
  virtual int move(std::span<void* const> pages, int node, std::span<int> status) = 0;
  // A mapping of huge pages of the pool of this size. ENOMEM: the pool has too few. EINVAL: there
  // is no such size.
  virtual int map_pool(std::size_t bytes, std::size_t page_bytes, std::byte*& at) = 0;
  // Transparent huge pages for the range. ENOTSUP: the system's switch is at never. EINVAL: a
  // kernel without them.
  virtual int want_huge(std::byte* at, std::size_t bytes) = 0;
  // Touches all pages. EFAULT or ENOMEM: there are not enough. EINVAL: before Linux 5.14.
  virtual int populate(std::byte* at, std::size_t bytes) = 0;
  // The node of the CPU that the calling thread runs on; 0 where the kernel does not say.
  virtual int node_here() = 0;
  // Whether there is one node with memory, so nothing to choose.
  virtual bool one_node() = 0;
};

// Of the running kernel. Lives for ever.
[[nodiscard]] PagePolicy& kernel_page_policy();

// What a transparent huge page has; 2 MiB where the kernel does not say.
[[nodiscard]] std::size_t huge_page_bytes();

// Empty where memory policies are obeyed or there is nothing to choose; else why not, and what to
// do. Places one page.
[[nodiscard]] std::string why_unplaced(PagePolicy& policy);

// "node 3" or "nodes 0, 2".
[[nodiscard]] std::string nodes_in_words(std::span<const int> nodes);
// An errno in words.
[[nodiscard]] std::string in_words(int error);

}  // namespace atl::runtime
