#include "registry.hpp"

#include <memory>
#include <string>

#include "scheduler/process.hpp"

namespace atl::runtime {

void Registry::add(const std::shared_ptr<Block>& block) {
  const std::scoped_lock lock(mutex_);
  // Arrays are few and made seldom, so this is the place to forget those that are gone.
  std::erase_if(blocks_, [](const auto& known) { return known.expired(); });
  blocks_.push_back(block);
}

std::vector<std::weak_ptr<Block>> Registry::of(int runtime) {
  const std::scoped_lock lock(mutex_);
  std::vector<std::weak_ptr<Block>> found;
  for (const auto& known : blocks_) {
    if (const auto block = known.lock(); block && block->runtime() == runtime) {
      found.push_back(known);
    }
  }
  return found;
}

Registry& registry() {
  static auto* const registry = [] {
    auto made = std::make_unique<Registry>();
    hold_over_fork(made->mutex_);
    return made.release();
  }();
  return *registry;
}

Rehomed rehome_all(Registry& registry, const NodeMap& map, const RehomeControl& control) {
  Rehomed all;
  // To the user the sums are of all arrays, those before included.
  const auto plus = [&all](const Rehomed& one) {
    Rehomed sum = all;
    sum.moved_bytes += one.moved_bytes;
    sum.already_bytes += one.already_bytes;
    sum.absent_bytes += one.absent_bytes;
    sum.failed_bytes += one.failed_bytes;
    sum.stopped = sum.stopped || one.stopped;
    if (sum.why.empty()) sum.why = one.why;
    return sum;
  };
  RehomeControl inner{control.stop, {}};
  if (control.after_slice) {
    inner.after_slice = [&](const Rehomed& one) { control.after_slice(plus(one)); };
  }
  const std::size_t ranks = map.node_of_rank.size();
  for (const auto& known : registry.of(map.runtime)) {
    const auto block = known.lock();
    if (!block) continue;
    if (static_cast<std::size_t>(block->parts()) == ranks) {
      all = plus(block->rehome(map.node_of_rank, inner));
    } else {  // made with a map of the user's own; no reason to leave the others where they are
      Rehomed left;
      left.failed_bytes = block->whole_bytes();
      left.why = "an array of " + std::to_string(block->parts()) + " parts has no place among " +
                 std::to_string(ranks) + " ranks; make it with the map of the runtime";
      all = plus(left);
    }
  }
  return all;
}

}  // namespace atl::runtime
