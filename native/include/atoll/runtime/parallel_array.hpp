// parallel_for over a partitioned array: each part runs where it lies.
//
//   auto rows = atl::Array<Row>::partitioned(n, runtime.node_map());
//   runtime.run([&] { atl::parallel_for(rows, [](Row& row) { row.update(); }); });
//
// Promises
//  - As parallel_for over the elements (parallel.hpp), but an element is processed by a worker of
//    the node on which its part's worker sits: by that worker if it comes to help in time, else by
//    another one of the node. Workers of other nodes do not help.
//  - Each node's share is a task, which has task-locals of its own. A group's task leaves its group
//    for the loop.
//  - An array of one part is processed by all workers of the caller.
//  - Throws RuntimeFault if the array has another number of parts than the runtime has workers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "atoll/runtime/array.hpp"
#include "atoll/runtime/parallel.hpp"
#include "atoll/runtime/task.hpp"

namespace atl {

namespace detail {

// The node, of the places, on which the worker of each part sits.
ATOLL_EXPORT std::vector<int> nodes_of_parts(int parts);

// Loops over the parts of one node, one after the other in the order of their ranks. Their sizes
// are about the same, so the loop's shares are about the parts.
template <class T, class Body>
void loop_over_parts(const std::vector<std::span<T>>& parts, Grain grain, Body& body) {
  std::uint64_t items = 0;
  for (const std::span<T>& part : parts) items += part.size();
  run_loop("parallel_for", items, grain, [&](std::uint64_t first, std::uint64_t last) {
    std::uint64_t begin = 0;  // of the part
    for (const std::span<T>& part : parts) {
      const std::uint64_t end = begin + part.size();
      const std::uint64_t from = std::max(first, begin);
      const std::uint64_t to = std::min(last, end);
      if (from < to) run_body(part.data(), from - begin, to - begin, body);
      begin = end;
    }
  });
}

}  // namespace detail

// Calls body(element) for each element or, if the body takes two arguments, body(first, last), two
// pointers, for each piece. `grain` 0: the default.
template <Placeable T, class Body>
  requires std::invocable<Body&, T&> || std::invocable<Body&, T*, T*>
void parallel_for(Array<T>& array, Body&& body, detail::Grain grain = 0) {
  if (array.parts() == 1) return parallel_for(array.begin(), array.end(), body, grain);
  const std::vector<int> nodes = detail::nodes_of_parts(array.parts());
  detail::SiblingContext siblings(detail::this_worker()->context);
  detail::run_as_siblings(siblings, [&] {
    std::vector<Task<>> tasks;
    std::vector<int> distinct = nodes;
    std::sort(distinct.begin(), distinct.end());
    distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
    for (const int node : distinct) {
      std::vector<std::span<T>> parts;
      for (std::size_t rank = 0; rank < nodes.size(); ++rank) {
        if (nodes[rank] == node) parts.push_back(array.part(static_cast<int>(rank)));
      }
      tasks.push_back(spawn(on_node(node), [&, parts = std::move(parts)] {
        try {
          const Stoppable with(siblings.stop_token());
          detail::loop_over_parts(parts, grain, body);
        } catch (...) {
          siblings.fail(std::current_exception());
        }
      }));
    }
    for (Task<>& task : tasks) task.join();
  });
}

}  // namespace atl
