// Set operations on sorted vectors of PU numbers.
#pragma once

#include <algorithm>
#include <iterator>
#include <string>

#include "model.hpp"

namespace atl::topology {

// Starts at the first possible match, because callers often look for one core of many.
inline bool contains(const Pus& outer, const Pus& inner) {
  if (inner.empty()) return true;
  const auto first = std::lower_bound(outer.begin(), outer.end(), inner.front());
  return std::includes(first, outer.end(), inner.begin(), inner.end());
}

inline Pus intersection(const Pus& a, const Pus& b) {
  Pus both;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
  return both;
}

inline bool intersects(const Pus& a, const Pus& b) {
  if (a.empty() || b.empty()) return false;
  auto i = std::lower_bound(a.begin(), a.end(), b.front());
  auto j = b.begin();
  while (i != a.end() && j != b.end()) {
    if (*i == *j) return true;
    if (*i < *j) {
      ++i;
    } else {
      ++j;
    }
  }
  return false;
}

// The kernel's list format, "0-3,8,10-11".
std::string to_list(const Pus& pus);

// Parses such a list. Returns false if `text` is malformed or names a CPU above 2^20.
bool from_list(const std::string& text, Pus& pus);

// Returns the OS index of the NUMA node that serves these CPUs, nullopt if they span nodes: the
// smallest that includes them, plain memory before special (HBM, NVM, CXL), then the lowest.
MaybeIndex local_node(const std::vector<NumaNode>& nodes, const Pus& pus);

// Leaves each CPU only in its local node. hwloc gives memory without CPUs the CPUs near it; for
// the kernel and numactl a CPU has one node.
void part_cpus(std::vector<NumaNode>& nodes);

}  // namespace atl::topology
