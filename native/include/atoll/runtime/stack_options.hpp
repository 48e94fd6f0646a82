// What stacks tasks get once they suspend (docs/runtime-stacks.md).
#pragma once

#include <cstddef>

namespace atl {

struct StackOptions {
  enum class Kind {
    guarded,  // a guard at both ends: an overflow ends in a message
    slab,     // no guards but canaries, looked at when the task suspends or ends: an overflow is
              // found too late. For huge counts of tasks on kernels before 6.13, where a guard
              // costs one of 65530 mappings
  };
  Kind kind = Kind::guarded;
  // Of address space for one stack, its control block and its guard page among it; rounded up to
  // whole pages; only touched pages cost memory. 256 KiB: enough for printf, regular expressions
  // and a query engine's operators with room to spare, and a million take 244 GiB of 128 TiB.
  std::size_t bytes = std::size_t{256} << 10;
};

}  // namespace atl
