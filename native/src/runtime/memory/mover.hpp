// Moves one slice of pages to a node, and counts the results.
#pragma once

#include <cerrno>
#include <cstddef>
#include <vector>

#include "atoll/runtime/placed_memory.hpp"
#include "page_policy.hpp"

namespace atl::runtime {

// Whether the status of a page shows that nobody has touched it.
inline bool is_absent(int status) { return status == -ENOENT || status == -EFAULT; }

class Mover {
 public:
  // `step_bytes`: the size of a page in queries.
  Mover(PagePolicy& policy, std::size_t step_bytes) : policy_(policy), step_bytes_(step_bytes) {}

  // A system call cannot be interrupted and delays page faults of the process meanwhile. 2 MiB take
  // about a millisecond; a larger page is a slice of its own.
  [[nodiscard]] std::size_t slice_bytes() const;

  // The node of each page; negative: an errno.
  [[nodiscard]] std::vector<int> look(std::byte* at, std::size_t bytes) const;

  // Moves the pages of the slice that are elsewhere to `node`; adds to the four counts, and sets
  // `why` if it is empty.
  void move(std::byte* at, std::size_t bytes, int node, Rehomed& sums) const;

 private:
  PagePolicy& policy_;
  std::size_t step_bytes_;
};

}  // namespace atl::runtime
