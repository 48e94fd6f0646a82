// How a Runtime is set up.
#pragma once

#include <cstddef>
#include <optional>

#include "atoll/runtime/places.hpp"

namespace atl {

// Stacks of tasks that suspend.
struct StackOptions {
  enum class Kind {
    guarded,  // a guard at both ends: an overflow ends in a message
    slab,     // no guards but canaries, looked at when the task suspends: for huge counts of tasks
              // on kernels before 6.13, where a guard costs one of 65530 mappings
  };
  Kind kind = Kind::guarded;
  std::size_t bytes = 256 * 1024;  // of address space; memory is what was touched, by the page
};

struct RuntimeOptions {
  int workers = 0;               // 0: one per core
  std::optional<Places> places;  // none: places_here()
  int spread = 0;                // over how many chiplets; 0: as few as hold the workers
  bool pin = true;               // bind workers to their cores and their memory to its node
  StackOptions stacks;
};

}  // namespace atl
