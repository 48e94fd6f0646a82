// The live machine, read by the topology library. A separate file because only this needs hwloc.
#include "atoll/runtime/places.hpp"
#include "atoll/topology.hpp"

namespace atl {

Places places_here() {
  // hwloc runs in a child with the calling thread's mask, so its `allowed` is ours.
  std::string machine;
  try {
    machine = topology::discover("live", "");
  } catch (const topology::Fault& fault) {
    throw RuntimeFault(std::string("this machine's topology cannot be read: ") + fault.what());
  }
  return places_from_machine(machine);
}

}  // namespace atl
