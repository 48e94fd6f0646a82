// An array with a copy on every node, so that all workers read near memory: for what is read often
// and written seldom (dimension tables, routing tables, a graph's offsets).
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "atoll/runtime/array.hpp"

namespace atl {

// As with any container: `local` from many threads at once, `update` while nobody reads.
template <Placeable T>
class Replicated {
 public:
  // A copy of `size` elements on each of `map.nodes`, all zero bytes. RuntimeFault: no node, and
  // whatever Array throws.
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

  // The copy on the node that the caller runs on; the first one where its node has none. It stays
  // valid, only not near, when the task moves on: ask again after a suspension.
  [[nodiscard]] std::span<const T> local() const { return on(detail::node_here()); }

  // The copy of that node.
  [[nodiscard]] std::span<const T> on(int node) const {
    const std::size_t index = copy_of(node);
    const Array<T>& copy = copies_[index == kNone ? 0 : index];
    return {copy.data(), copy.size()};
  }

  // Calls write(std::span<T>) for every copy, one after the other; it must write the same each
  // time. Where it throws, the copies differ until an update has gone through.
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
