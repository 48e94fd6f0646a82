// Memory whose pages lie where they were asked to, and what the kinds of it (array.hpp,
// replicated.hpp, memory_resources.hpp) have in common.
//
// Pages are placed by a policy (mbind) before anybody touches them, so who touches a page first
// does not matter, and memory that nobody touches costs none. A node that is full passes what it
// cannot take to its neighbours; `pages_found` says where pages are. In a sandbox that forbids
// mbind, and on a kernel without NUMA, pages lie where they are touched first: `why_unplaced`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "atoll/runtime/export.hpp"
#include "atoll/runtime/places.hpp"

namespace atl {

namespace runtime {
class Block;
}

// Which nodes there are, and on which of them each worker sits. OS indices.
struct NodeMap {
  std::vector<int> nodes;
  std::vector<int> node_of_rank;
  // Whose ranks these are, where a process has several runtimes: `rehome_all` moves the arrays that
  // were made with the same number.
  int runtime = 0;
};

// Of which pages memory is. None falls back to another kind.
enum class Pages {
  normal,       // as the system has it by default
  transparent,  // huge where the kernel finds any: MADV_HUGEPAGE, aligned to and placed by 2 MiB
  huge2m,       // of the pool of 2 MiB pages: taken, zeroed and placed when the memory is made
  huge1g,       // the same of 1 GiB
};

struct PagesFound {
  std::map<int, std::size_t> bytes_by_node;
  std::size_t absent_bytes = 0;   // touched by nobody so far
  std::size_t unknown_bytes = 0;  // the kernel does not say: a sandbox that forbids move_pages
  // On huge pages, transparent or of a pool. By /proc/self/smaps.
  std::size_t huge_bytes = 0;
};

// What came of moving pages. The four byte counts add up to the memory looked at, in whole pages.
struct Rehomed {
  std::size_t moved_bytes = 0;
  std::size_t already_bytes = 0;  // were on the right node
  std::size_t absent_bytes = 0;   // touched by nobody so far; will be on the right node
  std::size_t failed_bytes = 0;   // stay where they were
  bool stopped = false;           // asked to stop before all was looked at
  std::string why;                // of the first that failed
};

// How to follow and to end a long move: `after_slice` is called with the sums so far after at most
// 2 MiB (a page, where pages are larger), and `stop` is obeyed there.
struct RehomeControl {
  std::stop_token stop = {};
  std::function<void(const Rehomed&)> after_slice = {};
};

// Moves the partitions of all live arrays of `map.runtime` to the nodes where their ranks sit now.
// Any thread, at any time: readers and writers of the arrays go on, and an array that is destroyed
// meanwhile is left alone within a slice. About 1 ms for 2 MiB. Arrays with another number of parts
// than there are ranks count as failed.
ATOLL_EXPORT Rehomed rehome_all(const NodeMap& map, const RehomeControl& control = {});

// Empty where pages lie as policies say (also where there is but one node); else why they do not,
// and what to do about it.
[[nodiscard]] ATOLL_EXPORT const std::string& why_unplaced();

namespace detail {

// The node of the CPU that the caller runs on. No system call.
[[nodiscard]] ATOLL_EXPORT int node_here();

// Bytes in the memory of an array.
struct ByteRange {
  std::size_t begin;
  std::size_t end;
};

// The untyped memory behind an array. Zero bytes at first. Throws RuntimeFault from all of the
// makers: too large (also the product), no memory, no such node, no huge pages.
class ATOLL_EXPORT PlacedMemory {
 public:
  // Without a node: that of the calling thread.
  static PlacedMemory local(std::size_t count, std::size_t size, std::optional<int> node, Pages);
  static PlacedMemory interleaved(std::size_t count, std::size_t size, const NodeMap&, Pages);
  static PlacedMemory partitioned(std::size_t count, std::size_t size, const NodeMap&, Pages);

  PlacedMemory(PlacedMemory&& other) noexcept;
  PlacedMemory& operator=(PlacedMemory&& other) noexcept;
  ~PlacedMemory();

  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] int parts() const;
  [[nodiscard]] ByteRange part(int rank) const;
  [[nodiscard]] PagesFound pages_found() const;
  // Not const: other pages are under the data, though the same bytes.
  Rehomed rehome(std::span<const int> node_of_rank, const RehomeControl& control);

 private:
  explicit PlacedMemory(std::shared_ptr<runtime::Block> block);

  std::shared_ptr<runtime::Block> block_;
  std::byte* data_;
};

}  // namespace detail

}  // namespace atl
