// Moves one slice of pages to a node, and counts what came of it.
#pragma once

#include <cerrno>
#include <cstddef>
#include <vector>

#include "atoll/runtime/placed_memory.hpp"
#include "page_policy.hpp"

namespace atl::runtime {

// Of a page that was looked at: nobody has touched it.
inline bool is_absent(int status) { return status == -ENOENT || status == -EFAULT; }

class Mover {
 public:
  // `step_bytes`: the size of a page as it is looked at.
  Mover(PagePolicy& policy, std::size_t step_bytes) : policy_(policy), step_bytes_(step_bytes) {}

  // One system call cannot be interrupted, and holds up page faults of the process meanwhile. 2 MiB
  // take about a millisecond; a larger page is a slice of its own.
  [[nodiscard]] std::size_t slice_bytes() const;

  // The node of each page; negative: an errno.
  [[nodiscard]] std::vector<int> look(std::byte* at, std::size_t bytes) const;

  // The pages of the slice that are elsewhere go to `node`; adds to the four counts, and to `why`
  // where it is empty.
  void move(std::byte* at, std::size_t bytes, int node, Rehomed& sums) const;

 private:
  PagePolicy& policy_;
  std::size_t step_bytes_;
};

}  // namespace atl::runtime
