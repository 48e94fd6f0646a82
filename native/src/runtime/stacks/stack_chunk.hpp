// A chunk: one mapping divided into equal stacks, and the list of all chunks for the overflow
// handler.
//
//   | edge | stack 0 ... block | edge | stack 1 ... block | edge | ...
//
// An edge is a guard of 64 KiB, or a cache line of canary words in the slab mode: the canary of
// stack i + 1 shares the page of stack i's control block, so it costs no page of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "atoll/runtime/stack_options.hpp"
#include "fiber.hpp"
#include "stack_guard.hpp"

namespace atl::runtime {

using StackKind = StackOptions::Kind;

struct ChunkRecord;

class StackChunk {
 public:
  // `stride`: from stack to stack. `node`: the OS index whose memory is preferred; -1 for any.
  // Throws RuntimeFault if there is no address space.
  StackChunk(StackKind kind, std::size_t stride, int node, Guards& guards);
  StackChunk(const StackChunk&) = delete;
  StackChunk& operator=(const StackChunk&) = delete;
  ~StackChunk();

  [[nodiscard]] bool full() const { return made_ == count_; }
  // The next stack, with its control block. The chunk must not be full. Throws as Guards::install.
  Fiber* make();
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

 private:
  std::byte* edge_of(std::size_t index) const;  // the edge below a stack
  std::byte* block_of(std::size_t index) const;
  void make_edge(std::size_t index);

  StackKind kind_;
  std::size_t stride_;
  std::size_t edge_bytes_;
  std::size_t first_;  // where stack 0 begins
  std::size_t count_;
  std::size_t bytes_;
  std::size_t made_ = 0;
  std::size_t edges_ = 0;
  Guards& guards_;
  std::byte* memory_;
  ChunkRecord* record_;
};

// The guard that contains an address.
struct GuardHit {
  std::byte* low;           // of the guard
  std::byte* high;          // its end: where the stack above it begins
  std::size_t stack_bytes;  // from guard to guard
};

// Async-signal-safe. Empty if the address is in no guard of any chunk.
std::optional<GuardHit> find_guard(const void* address) noexcept;

}  // namespace atl::runtime
