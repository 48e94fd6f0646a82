// The live machine by the topology library. Apart from the others, for it alone needs hwloc.
#include "atoll/runtime/places.hpp"
#include "atoll/topology.hpp"

namespace atl {

Places places_here() {
  // hwloc runs in a child, which has the calling thread's mask: `allowed` in its answer is ours.
  std::string machine;
  try {
    machine = topology::discover("live", "");
  } catch (const topology::Fault& fault) {
    throw RuntimeFault(std::string("this machine's topology cannot be read: ") + fault.what());
  }
  return places_from_machine(machine);
}

}  // namespace atl
