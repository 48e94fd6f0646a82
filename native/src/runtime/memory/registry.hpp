// The live partitioned arrays of the process, so that a runtime whose workers move can move their
// memory, too. Never destroyed: arrays of static lifetime may outlive everything else.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "block.hpp"

namespace atl::runtime {

class Registry {
 public:
  void add(const std::shared_ptr<Block>& block);
  // The arrays of one runtime. Weak, so that memory can be freed while other arrays move.
  [[nodiscard]] std::vector<std::weak_ptr<Block>> of(int runtime);

 private:
  friend Registry& registry();

  std::mutex mutex_;
  std::vector<std::weak_ptr<Block>> blocks_;
};

// The process's.
[[nodiscard]] Registry& registry();

// `rehome_all` over the arrays of one registry.
Rehomed rehome_all(Registry& registry, const NodeMap& map, const RehomeControl& control);

}  // namespace atl::runtime
