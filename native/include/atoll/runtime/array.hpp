// Arrays of a fixed size on chosen nodes: local, interleaved, or partitioned by worker.
//
// The idea is Shoal's (Kaestle et al., USENIX ATC 2015): the program says how it uses an array, the
// library decides where its pages go. Elements are zero bytes at first although nobody has touched
// them, which restricts their types.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>

#include "atoll/runtime/placed_memory.hpp"

namespace atl {

// Can begin as zero bytes, needs no destructor call, and is no more aligned than a page.
template <typename T>
concept Placeable = std::is_object_v<T> && std::is_trivially_default_constructible_v<T> &&
                    std::is_trivially_copyable_v<T> && alignof(T) <= 4096;

// Can be moved, not copied; `data()` stays the same when the Array or its pages move. A moved-from
// Array may only be assigned to or destroyed. As with std::vector, reads may run at the same time;
// while a thread writes an element, no other may use it.
template <Placeable T>
class Array {
 public:
  using value_type = T;

  // All pages on one node.
  static Array local(std::size_t size, int node, Pages pages = Pages::normal) {
    return {size, detail::PlacedMemory::local(size, sizeof(T), node, pages)};
  }

  // On the node of the calling worker.
  static Array local(std::size_t size, Pages pages = Pages::normal) {
    return {size, detail::PlacedMemory::local(size, sizeof(T), std::nullopt, pages)};
  }

  // The pages take turns over `map.nodes`.
  static Array interleaved(std::size_t size, const NodeMap& map, Pages pages = Pages::normal) {
    return {size, detail::PlacedMemory::interleaved(size, sizeof(T), map, pages)};
  }

  // A block of neighbouring pages per rank, each on the node of its rank's core.
  static Array partitioned(std::size_t size, const NodeMap& map, Pages pages = Pages::normal) {
    return {size, detail::PlacedMemory::partitioned(size, sizeof(T), map, pages)};
  }

  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] T* data() { return reinterpret_cast<T*>(memory_.data()); }
  [[nodiscard]] const T* data() const { return reinterpret_cast<const T*>(memory_.data()); }
  [[nodiscard]] T* begin() { return data(); }
  [[nodiscard]] T* end() { return data() + size_; }
  [[nodiscard]] const T* begin() const { return data(); }
  [[nodiscard]] const T* end() const { return data() + size_; }
  T& operator[](std::size_t index) { return data()[index]; }
  const T& operator[](std::size_t index) const { return data()[index]; }

  // Number of parts: one per rank of a partitioned array, else 1.
  [[nodiscard]] int parts() const { return memory_.parts(); }

  // The elements that begin in the block of `rank`. Each element is in one part, in order; a part
  // differs from an even share by at most a page and an element. Only the end of its last element
  // may be on the next rank's page. Throws RuntimeFault if there is no such rank.
  [[nodiscard]] std::span<T> part(int rank) {
    const auto [first, last] = elements_of(rank);
    return {data() + first, last - first};
  }
  [[nodiscard]] std::span<const T> part(int rank) const {
    const auto [first, last] = elements_of(rank);
    return {data() + first, last - first};
  }

  // Asks the kernel about every page.
  [[nodiscard]] PagesFound pages_found() const { return memory_.pages_found(); }

  // Moves those pages of a partitioned array that are not where their ranks sit now, while others
  // may use the elements. Does nothing for other kinds. Throws RuntimeFault unless there are as
  // many nodes as parts.
  Rehomed rehome(std::span<const int> node_of_rank, const RehomeControl& control = {}) {
    return memory_.rehome(node_of_rank, control);
  }

 private:
  Array(std::size_t size, detail::PlacedMemory memory) : memory_(std::move(memory)), size_(size) {}

  struct Elements {
    std::size_t first;
    std::size_t last;
  };

  [[nodiscard]] Elements elements_of(int rank) const {
    const detail::ByteRange bytes = memory_.part(rank);
    const auto begins_at_or_after = [](std::size_t byte) {
      return byte / sizeof(T) + (byte % sizeof(T) != 0 ? 1 : 0);
    };
    return {begins_at_or_after(bytes.begin), begins_at_or_after(bytes.end)};
  }

  detail::PlacedMemory memory_;
  std::size_t size_;
};

}  // namespace atl
