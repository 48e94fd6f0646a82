// Arrays of a fixed size on chosen nodes: local, interleaved, or partitioned by worker.
//
// The idea is Shoal's (Kaestle et al., USENIX ATC 2015): the program says how an array is used, the
// library where its pages go. Elements are zero bytes at first, without anybody having touched
// them, hence the types that may be elements.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>

#include "atoll/runtime/placed_memory.hpp"

namespace atl {

// Begins as zero bytes and ends without a call. Pages hold it aligned.
template <typename T>
concept Placeable = std::is_object_v<T> && std::is_trivially_default_constructible_v<T> &&
                    std::is_trivially_copyable_v<T> && alignof(T) <= 4096;

// Moves, does not copy; `data()` stays the same over moves of the Array and of its pages. One that
// was moved from may only be assigned to or destroyed. As with std::vector, reads may run at the
// same time; a write needs that nobody else uses the element.
template <Placeable T>
class Array {
 public:
  using value_type = T;

  // All of it on one node.
  static Array local(std::size_t size, int node, Pages pages = Pages::normal) {
    return {size, detail::PlacedMemory::local(size, sizeof(T), node, pages)};
  }

  // On the node of the calling worker.
  static Array local(std::size_t size, Pages pages = Pages::normal) {
    return {size, detail::PlacedMemory::local(size, sizeof(T), std::nullopt, pages)};
  }

  // Page by page in turn over `map.nodes`.
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

  // How many parts: the ranks of a partitioned array, else 1.
  [[nodiscard]] int parts() const { return memory_.parts(); }

  // The elements that begin in the block of `rank`: every element is in one part, in order, and a
  // part is within a page and an element of an even share. Only the end of its last element may lie
  // on the next rank's page. RuntimeFault: no such rank.
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

  // Moves the parts of a partitioned array to where their ranks sit now, and only pages that are
  // elsewhere; others' use of the elements goes on. Of other kinds nothing moves. RuntimeFault: as
  // many nodes as parts are needed.
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
