#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "atoll/runtime/memory_resources.hpp"
#include "chunks.hpp"
#include "page_policy.hpp"
#include "scheduler/process.hpp"

namespace atl {

namespace {

struct Pools {
  explicit Pools(runtime::Layout layout)
      : chunks(runtime::kernel_page_policy(), std::move(layout)),
        pools({.max_blocks_per_chunk = 0, .largest_required_pool_block = runtime::kLargestPooled},
              &chunks) {}

  runtime::Chunks chunks;
  std::pmr::synchronized_pool_resource pools;
};

std::pmr::memory_resource& resource(runtime::Layout layout) {
  // Never destroyed: containers of static lifetime free into it at the very end.
  static auto* const mutex = [] {
    auto made = std::make_unique<std::mutex>();
    runtime::hold_over_fork(*made);
    return made.release();
  }();
  static auto* const known =
      new std::map<std::pair<runtime::Layout::Kind, std::vector<int>>, std::unique_ptr<Pools>>;
  const std::scoped_lock lock(*mutex);
  const auto key = std::pair(layout.kind, layout.nodes);
  const auto found = known->find(key);
  if (found != known->end()) return found->second->pools;
  auto pools = std::make_unique<Pools>(std::move(layout));
  return known->emplace(key, std::move(pools)).first->second->pools;
}

}  // namespace

std::pmr::memory_resource& local_memory(int node) {
  return resource({runtime::Layout::Kind::kLocal, {node}, 0});
}

std::pmr::memory_resource& local_memory() { return local_memory(detail::node_here()); }

std::pmr::memory_resource& interleaved_memory(const NodeMap& map) {
  std::vector<int> nodes = map.nodes;
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  return resource({runtime::Layout::Kind::kInterleaved, std::move(nodes), 0});
}

}  // namespace atl
