// The stacks that tasks get when they suspend (docs/runtime-stacks.md).
#pragma once

#include <cstddef>

namespace atl {

struct StackOptions {
  enum class Kind {
    guarded,  // a guard at both ends: an overflow ends the program with a message
    slab,     // canaries instead of guards, checked when the task suspends or ends: they detect an
              // overflow too late. For huge numbers of tasks on kernels before 6.13, where each
              // guard uses one of 65530 mappings
  };
  Kind kind = Kind::guarded;
  // Address space of one stack, including its control block, rounded up to whole pages; only
  // touched pages use memory. 256 KiB is more than enough for printf, regular expressions and a
  // query engine's operators. With its guard of 64 KiB, a million stacks take 305 GiB of 128 TiB.
  std::size_t bytes = std::size_t{256} << 10;
};

}  // namespace atl
