// The memory of one array: a reservation, the policy of its pages, and the moving of its parts.
#pragma once

#include <atomic>
#include <cstddef>
#include <mutex>
#include <span>
#include <vector>

#include "atoll/runtime/placed_memory.hpp"
#include "page_policy.hpp"
#include "reservation.hpp"

namespace atl::runtime {

struct Layout {
  enum class Kind { kLocal, kInterleaved, kPartitioned };
  Kind kind = Kind::kLocal;
  // Local: one, or none for the node of the first touch. Interleaved: in turn over them.
  // Partitioned: the node of each rank.
  std::vector<int> nodes;
  int runtime = 0;  // NodeMap::runtime
};

class Block {
 public:
  // Throws RuntimeFault if Reservation does, without nodes, or if a node has no memory for us.
  Block(PagePolicy& policy, std::size_t bytes, Layout layout, Pages pages);

  [[nodiscard]] std::byte* data() const { return reservation_.data(); }
  // In whole pages.
  [[nodiscard]] std::size_t whole_bytes() const { return reservation_.whole_bytes(); }
  [[nodiscard]] bool partitioned() const { return kind_ == Layout::Kind::kPartitioned; }
  [[nodiscard]] int runtime() const { return runtime_; }
  [[nodiscard]] int parts() const { return parts_; }
  // Throws RuntimeFault if there is no such rank.
  [[nodiscard]] detail::ByteRange part(int rank) const;
  [[nodiscard]] PagesFound found() const;

  // Thread-safe; moves of one block wait for each other, so the last call's nodes win. Throws
  // RuntimeFault unless there is one node for each rank.
  Rehomed rehome(std::span<const int> node_of_rank, const RehomeControl& control);

  // The array is gone: a thread that moves its pages now must stop at the next slice.
  void abandon() { abandoned_.store(true, std::memory_order_relaxed); }

 private:
  void place(const Layout& layout);
  void place(detail::ByteRange range, Placement placement, std::span<const int> nodes);
  void rehome_part(detail::ByteRange range, int node, const RehomeControl& control, Rehomed& sums);
  // The unit of one query: a small page, also in a transparent huge one, which may be split at any
  // time; a page of a pool is never split.
  [[nodiscard]] std::size_t step_bytes() const;
  [[nodiscard]] detail::ByteRange whole_pages(detail::ByteRange range) const;

  PagePolicy& policy_;
  Reservation reservation_;
  Layout::Kind kind_;
  int parts_;
  int runtime_;
  std::mutex rehoming_;
  std::atomic<bool> abandoned_{false};
};

}  // namespace atl::runtime
