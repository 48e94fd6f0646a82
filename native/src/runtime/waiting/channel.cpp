#include "atoll/runtime/channel.hpp"

#include "atoll/runtime/places.hpp"

namespace atl::detail {

void fault_no_capacity() {
  throw RuntimeFault("a Channel of capacity 0: give room for 1 or more items");
}

}  // namespace atl::detail
