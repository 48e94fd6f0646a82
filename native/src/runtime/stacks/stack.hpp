// Stacks for fibers: a pool per NUMA node that only grows, in chunks of address space. A stack
// takes memory page by page as it is used, and keeps it after it is returned, until `trim`.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "fiber.hpp"
#include "stack_chunk.hpp"
#include "stack_guard.hpp"

namespace atl::runtime {

struct StackCounts {
  std::size_t live = 0;          // taken and not returned
  std::size_t peak = 0;          // the most that were live at once
  std::size_t made = 0;          // live or idle
  std::size_t mapped_bytes = 0;  // of address space
};

class StackPool {
 public:
  // `nodes`: OS indices. With more than one, each node's stacks prefer its memory.
  // Throws RuntimeFault if the sizes are impossible or a shadow stack is on (x86 CET).
  explicit StackPool(StackOptions options, std::span<const int> nodes = {},
                     GuardSupport support = guard_support());
  // No stack may be running; suspended frames on them are not unwound.
  ~StackPool();
  StackPool(const StackPool&) = delete;
  StackPool& operator=(const StackPool&) = delete;

  // A fiber of the node (of the first node, if this one is unknown): a returned one, as it was when
  // it was returned; else a new one that starts `entry`. If the node has no more, one of another
  // node. Any thread; amortised constant. Throws RuntimeFault if there is none.
  Fiber* take(int node, FiberEntry entry);
  // Returns it to its node, as it is. Not the running one. Any thread; constant.
  void give(Fiber* fiber) noexcept;
  // Returns the memory of idle stacks, except `keep` on each node, to the system, except the pages
  // of their suspended frames. Returns the number of stacks.
  std::size_t trim(std::size_t keep);

  [[nodiscard]] StackCounts counts() const;

 private:
  // The stacks of one node.
  struct alignas(128) Shelf {
    mutable std::mutex mutex;
    Fiber* idle = nullptr;
    std::vector<std::unique_ptr<StackChunk>> chunks;
    std::size_t made = 0;
    int node = 0;
  };

  Shelf& shelf_of(int node) noexcept;
  static Fiber* pop(Shelf& shelf) noexcept;
  Fiber* make(Shelf& shelf);
  Fiber* of_another_node(const Shelf& except) noexcept;
  void count_taken() noexcept;

  StackKind kind_;
  std::size_t stride_;
  Guards guards_;
  std::vector<Shelf> shelves_;
  std::atomic<std::size_t> live_{0};
  std::atomic<std::size_t> peak_{0};
};

}  // namespace atl::runtime
