#include "atoll/runtime/latch.hpp"

#include "atoll/runtime/places.hpp"

namespace atl {

void Latch::fault_below_zero() {
  throw RuntimeFault("a Latch was counted below 0: give it as many as there are count_downs");
}

}  // namespace atl
