// An array with a copy on every node, so that all workers read near memory: for data that is read
// often and rarely written (dimension tables, routing tables, a graph's offsets).
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "atoll/runtime/array.hpp"

namespace atl {

// Many threads may call `local` at once; `update` only while none reads.
template <Placeable T>
class Replicated {
 public:
  // Makes a copy of `size` zeroed elements on each of `map.nodes`. Throws RuntimeFault if there are
  // no nodes, and whatever Array throws.
  Replicated(std::size_t size, const NodeMap& map, Pages pages = Pages::normal) {
    if (map.nodes.empty()) throw RuntimeFault("a replicated array needs a node; NodeMap has none");
    for (const int node : map.nodes) {
      if (copy_of(node) != kNone) continue;
      Array<T> copy = Array<T>::local(size, node, pages);  // refuses a node below 0
      copy_of_node_.resize(std::max(copy_of_node_.size(), static_cast<std::size_t>(node) + 1),
                           kNone);
      copy_of_node_[static_cast<std::size_t>(node)] = copies_.size();
      copies_.push_back(std::move(copy));
    }
  }

  [[nodiscard]] std::size_t size() const { return copies_.front().size(); }
  [[nodiscard]] std::size_t copies() const { return copies_.size(); }

  // The copy on the caller's node, or the first copy if that node has none. After the task moves,
  // the span stays valid but may be far: call `local` again after a suspension.
  [[nodiscard]] std::span<const T> local() const { return on(detail::node_here()); }

  // The copy of that node.
  [[nodiscard]] std::span<const T> on(int node) const {
    const std::size_t index = copy_of(node);
    const Array<T>& copy = copies_[index == kNone ? 0 : index];
    return {copy.data(), copy.size()};
  }

  // Calls write(std::span<T>) for each copy in turn; it must write the same each time. If it
  // throws, the copies differ until an update succeeds.
  template <typename Write>
  void update(Write&& write) {
    for (Array<T>& copy : copies_) write(std::span<T>(copy.data(), copy.size()));
  }

 private:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  [[nodiscard]] std::size_t copy_of(int node) const {
    const auto index = static_cast<std::size_t>(node);
    return node >= 0 && index < copy_of_node_.size() ? copy_of_node_[index] : kNone;
  }

  std::vector<Array<T>> copies_;
  std::vector<std::size_t> copy_of_node_;  // by OS index; kNone where there is none
};

}  // namespace atl
