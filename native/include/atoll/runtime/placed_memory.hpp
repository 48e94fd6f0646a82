// Memory whose pages are on chosen nodes, and what its kinds (array.hpp, replicated.hpp,
// memory_resources.hpp) have in common.
//
// A policy (mbind) places the pages before anybody touches them, so it does not matter who touches
// a page first, and untouched memory costs none. What a full node cannot take goes to its
// neighbours; `pages_found` reports where pages are. In a sandbox that forbids mbind, and on a
// kernel without NUMA, pages are where they are first touched: see `why_unplaced`.
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

// The nodes, and the node of each worker. OS indices.
struct NodeMap {
  std::vector<int> nodes;
  std::vector<int> node_of_rank;
  // The runtime of these ranks, if a process has several: `rehome_all` moves the arrays that were
  // made with the same number.
  int runtime = 0;
};

// The kind of pages. None falls back to another kind.
enum class Pages {
  normal,       // the system's default
  transparent,  // huge where the kernel has some: MADV_HUGEPAGE, aligned to and placed by 2 MiB
  huge2m,       // from the pool of 2 MiB pages: taken, zeroed and placed when the memory is made
  huge1g,       // the same with 1 GiB
};

struct PagesFound {
  std::map<int, std::size_t> bytes_by_node;
  std::size_t absent_bytes = 0;   // not touched yet
  std::size_t unknown_bytes = 0;  // not known: a sandbox forbids move_pages
  // On huge pages, transparent or from a pool, according to /proc/self/smaps.
  std::size_t huge_bytes = 0;
};

// The result of moving pages. The four byte counts add up to the pages examined.
struct Rehomed {
  std::size_t moved_bytes = 0;
  std::size_t already_bytes = 0;  // were on the right node
  std::size_t absent_bytes = 0;   // not touched yet; will be on the right node
  std::size_t failed_bytes = 0;   // stayed where they were
  bool stopped = false;           // asked to stop before the end
  std::string why;                // the cause of the first failure
};

// Follows and ends a long move: `after_slice` is called with the sums so far after at most 2 MiB (a
// page, if pages are larger), and `stop` is checked there.
struct RehomeControl {
  std::stop_token stop = {};
  std::function<void(const Rehomed&)> after_slice = {};
};

// Moves the partitions of all live arrays of `map.runtime` to the nodes where their ranks sit now.
// Any thread may call it at any time: readers and writers of the arrays go on, and it leaves an
// array that is destroyed meanwhile within a slice. About 1 ms for 2 MiB. Arrays whose number of
// parts is not the number of ranks count as failed.
ATOLL_EXPORT Rehomed rehome_all(const NodeMap& map, const RehomeControl& control = {});

// Empty if policies place pages (also if there is only one node); otherwise why they do not, and
// what to do about it.
[[nodiscard]] ATOLL_EXPORT const std::string& why_unplaced();

namespace detail {

// The node of the CPU that the caller runs on. No system call.
[[nodiscard]] ATOLL_EXPORT int node_here();

// A range of bytes in the memory of an array.
struct ByteRange {
  std::size_t begin;
  std::size_t end;
};

// The untyped memory of an array, zeroed. All makers throw RuntimeFault if the size (or the
// product) is too large, memory or huge pages run out, or there is no such node.
class ATOLL_EXPORT PlacedMemory {
 public:
  // Without a node: on the calling thread's node.
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
  // Not const: the data gets other pages, though the same bytes.
  Rehomed rehome(std::span<const int> node_of_rank, const RehomeControl& control);

 private:
  explicit PlacedMemory(std::shared_ptr<runtime::Block> block);

  std::shared_ptr<runtime::Block> block_;
  std::byte* data_;
};

}  // namespace detail

}  // namespace atl
