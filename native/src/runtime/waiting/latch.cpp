#include "atoll/runtime/latch.hpp"

#include "atoll/runtime/places.hpp"

namespace atl {

void Latch::fault_below_zero() {
  throw RuntimeFault(
      "a Latch was counted below 0, or by less than 0: make its count the number of count_downs");
}

}  // namespace atl
